"""Events out of Parquet: tables of whole lines, or of envelopes, of which each row is made a line again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO, Final, cast

from spanforge.exceptions import MissingExtraError

__all__ = ["PARQUET_MAGIC", "damage_of", "has_events", "lines_of", "parquet_modules", "rows_of_table"]

PARQUET_MAGIC: Final = b"PAR1"
_ROWS: Final = 1024
_LINE: Final = "line"
_KEY: Final = "event_id"
_OBJECTS: Final = ("payload", "tags")


def rows_of_table(stream: BinaryIO, damaged: Counter[str]) -> Iterator[bytes]:
    """Give the rows of a table of events as lines.

    A table has either a column `line`, each an event as it is stored in a file, or columns named as the fields of the
    envelope; `payload` and `tags` are structs, maps or JSON texts, and null is absent.

    Args:
        stream: The file, at its start.
        damaged: Counts it as `corrupt` where it cannot be read, and as `no_events` where it is a table of others.
    """
    arrow, parquet = parquet_modules()
    try:
        table = parquet.ParquetFile(stream)
        if not has_events(table):
            damaged["no_events"] += 1
            return
        columns = [_LINE] if _LINE in table.schema_arrow.names else None
        for batch in table.iter_batches(_ROWS, columns=columns):
            yield from lines_of(batch)
    except (*damage_of(arrow), OSError):
        damaged["corrupt"] += 1


def parquet_modules() -> tuple[Any, Any]:
    """Return `pyarrow` and `pyarrow.parquet`.

    Raises:
        MissingExtraError: They are not installed.
    """
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("reading Parquet files", "analysis") from None


def damage_of(arrow: Any) -> tuple[type[Exception], ...]:
    """Return what is raised where a table, or a value of it, cannot be read.

    Text that is none, a time beyond the calendar and two columns of one name are found by Python, not by Arrow.
    """
    return arrow.ArrowException, ValueError, OverflowError, KeyError


def has_events(table: Any) -> bool:
    """Tell whether a `ParquetFile` is a table of events, by its columns."""
    return not {_LINE, _KEY}.isdisjoint(table.schema_arrow.names)


def lines_of(batch: Any) -> list[bytes]:
    """Return the rows of a record batch as lines."""
    rows = batch.select([_LINE]) if _LINE in batch.schema.names else batch
    return [_line(row) for row in rows.to_pylist()]


def _line(row: dict[str, Any]) -> bytes:
    whole = row.get(_LINE)
    if whole is not None:
        return whole if isinstance(whole, bytes) else str(whole).encode("utf-8", "surrogatepass")
    envelope = {name: _object(value) if name in _OBJECTS else value for name, value in row.items()}
    return json.dumps(_present(envelope), default=str).encode()


def _object(value: Any) -> Any:
    """Return an object that stands there as text, or as pairs, as one."""
    with suppress(ValueError, TypeError):
        return json.loads(value) if isinstance(value, str) else dict(value)
    return value


def _present(value: Any) -> Any:
    """Leave out what is null: a struct has every field in every row."""
    if isinstance(value, dict):
        return {k: _present(v) for k, v in cast("dict[str, Any]", value).items() if v is not None}
    if isinstance(value, list):
        return [_present(one) for one in cast("list[Any]", value)]
    return value
