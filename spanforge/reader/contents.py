"""The lines of a file of any kind that events are stored in, told by its first bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from spanforge.reader.lines import SQLITE_MAGIC, Line, is_compressed, lines_of
from spanforge.reader.paths import File
from spanforge.reader.store import rows_of
from spanforge.reader.tables import PARQUET_MAGIC, rows_of_table

__all__ = ["HEAD_BYTES", "is_whole", "stored_lines"]

HEAD_BYTES: Final = len(SQLITE_MAGIC)


def is_whole(head: bytes) -> bool:
    """Tell by its first bytes whether a file can be read only from its start."""
    return is_compressed(head) or head.startswith((PARQUET_MAGIC, SQLITE_MAGIC))


def stored_lines(file: File, limit: int, damaged: Counter[str]) -> Iterator[Line]:
    """Give the lines of a file.

    Args:
        file: On this machine or behind a URL.
        limit: Longest line in bytes.
        damaged: Counts what of it cannot be had.
    """
    with file.open("rb") as stream:
        head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
        if head.startswith(PARQUET_MAGIC):
            yield from (Line(row, ended=True) for row in rows_of_table(stream, damaged))
        elif head != SQLITE_MAGIC:
            yield from lines_of(stream, head, limit, damaged)
    if head == SQLITE_MAGIC:
        yield from _rows(file, limit, damaged)


def _rows(file: File, limit: int, damaged: Counter[str]) -> Iterator[Line]:
    if isinstance(file, Path):
        with closing(rows_of(file, limit, damaged)) as rows:
            for row in rows:
                yield Line(row.line, ended=True)
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "store.db"
        file.fetch(copy)
        yield from _rows(copy, limit, damaged)
