"""A Parquet table of events written anew without some of its rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final

from spanforge.exceptions import ConfigError
from spanforge.reader.tables import has_events, lines_of, parquet_modules
from spanforge.sinks.rewriting import check_still_there, replacing, save

__all__ = ["prune_table"]

_ROWS: Final = 1024


def prune_table(file: Path, goes: Callable[[bytes], bool], *, dry_run: bool) -> None:
    """Put a table in place of itself in one step, without rows of it; one that loses none stays as it is.

    Row groups, columns, metadata and compression stay as they are, and nothing is kept of what went.

    Args:
        file: The table.
        goes: Told each row as a line, tells whether it goes; asked once.
        dry_run: Ask, and change nothing.

    Raises:
        ConfigError: It is damaged, or a table of something else.
        MissingExtraError: What reads Parquet is not installed.
        OSError: It was moved meanwhile, has another name or belongs to another user, or the disk is full.
    """
    arrow, parquet = parquet_modules()
    file, problem = file.resolve(), ""
    with ExitStack() as stack:
        old = stack.enter_context(file.open("rb"))
        try:
            table = parquet.ParquetFile(old)
            if not has_events(table):
                raise ConfigError("it is a table of something else than events; make it anew of what was pruned")
            new, take_its_name = (None, None) if dry_run else stack.enter_context(replacing(file, old))
            if _copy(table, new, goes, (arrow, parquet)) and new is not None and take_its_name is not None:
                save(new)
                check_still_there(file, old)
                take_its_name()
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
            problem = "the table is damaged"
    if problem:
        raise ConfigError(problem)


def _copy(table: Any, new: BinaryIO | None, goes: Callable[[bytes], bool], modules: tuple[Any, Any]) -> bool:
    """Write the rows that stay, where there is a file for them; return whether any goes."""
    arrow, parquet = modules
    lost = False
    with ExitStack() as stack:
        writer = None
        if new is not None:
            writer = stack.enter_context(parquet.ParquetWriter(new, table.schema_arrow, compression=_codecs(table)))
        for group in range(table.num_row_groups):
            kept: list[Any] = []
            for batch in table.iter_batches(_ROWS, row_groups=[group]):
                stays = [not goes(line) for line in lines_of(batch)]
                lost = lost or not all(stays)
                kept.append(batch.filter(arrow.array(stays, arrow.bool_())))
            if writer is not None:
                writer.write_table(arrow.Table.from_batches(kept, table.schema_arrow))
    return lost


def _codecs(table: Any) -> dict[str, str]:
    """Return the compression of each column, by its path."""
    if not table.num_row_groups:
        return {}
    group = table.metadata.row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    return {column.path_in_schema: column.compression for column in columns}
