"""A Parquet table of events written anew without some of its rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final

from spanforge.exceptions import ConfigError
from spanforge.reader.tables import damage_of, has_events, lines_of, parquet_modules
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
                problem = "it is a table of something else than events; make it anew of what was pruned"
            elif dry_run:
                _copy(table, None, goes, (arrow, parquet))
            else:
                new, take_its_name = stack.enter_context(replacing(file, old))
                if _copy(table, new, goes, (arrow, parquet)):
                    save(new)
                    check_still_there(file, old)
                    take_its_name()
        except damage_of(arrow):
            problem = "the table is damaged"
    if problem:
        raise ConfigError(problem)


def _copy(table: Any, new: BinaryIO | None, goes: Callable[[bytes], bool], modules: tuple[Any, Any]) -> bool:
    """Write the rows that stay, where there is a file for them; return whether any goes."""
    arrow, parquet = modules
    lost, schema = False, table.schema_arrow
    plain = arrow.schema([field.with_type(_plain(arrow, field.type)) for field in schema], schema.metadata)
    with ExitStack() as stack:
        writer = None
        if new is not None:
            writer = stack.enter_context(parquet.ParquetWriter(new, schema, compression=_codecs(table)))
        for group in range(table.num_row_groups):
            kept: list[Any] = []
            for batch in table.iter_batches(_ROWS, row_groups=[group]):
                stays = [not goes(line) for line in lines_of(batch)]
                lost = lost or not all(stays)
                kept.append(batch.cast(plain).filter(arrow.array(stays, arrow.bool_())))
            if writer is not None:
                writer.write_table(arrow.Table.from_batches(kept, plain).cast(schema))
    return lost


def _plain(arrow: Any, kind: Any) -> Any:
    """Return the type that holds the same values each by itself.

    A dictionary would be written whole, with the values of rows that went, and Arrow cannot filter views.
    """
    types = arrow.types
    if types.is_dictionary(kind):
        return _plain(arrow, kind.value_type)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return arrow.large_string() if types.is_string_view(kind) else arrow.large_binary()
    if types.is_struct(kind):
        return arrow.struct([field.with_type(_plain(arrow, field.type)) for field in kind])
    if types.is_map(kind):
        return arrow.map_(_plain(arrow, kind.key_type), _plain(arrow, kind.item_type), kind.keys_sorted)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        made = arrow.large_list if types.is_large_list(kind) else arrow.list_
        size = (kind.list_size,) if types.is_fixed_size_list(kind) else ()
        return made(kind.value_field.with_type(_plain(arrow, kind.value_type)), *size)
    return kind


def _codecs(table: Any) -> dict[str, str]:
    """Return the compression of each column, by its path."""
    if not table.num_row_groups:
        return {}
    group = table.metadata.row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    # A file says it by another word than is asked for.
    return {one.path_in_schema: one.compression.replace("UNCOMPRESSED", "NONE") for one in columns}
