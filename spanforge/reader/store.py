"""Lines out of a database of the sqlite sink, without disturbing whoever writes it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Row", "connect", "last_row", "newest_ever", "rows_of"]

_PROBLEMS: Final = {"SQLITE_ERROR": "not_a_store", "SQLITE_BUSY": "locked"}


class Row(NamedTuple):
    """One stored event.

    Attributes:
        seq: Its place in the order of arrival.
        line: The line.
    """

    seq: int
    line: bytes


def rows_of(path: Path, limit: int, damaged: Counter[str], *, after: int = 0) -> Generator[Row]:
    """Give the stored lines in the order they arrived.

    Args:
        path: The database.
        limit: Longest line in bytes; longer ones are counted as `too_long` and never loaded.
        damaged: Counts those, and once `corrupt`, `locked` or `not_a_store` where the database cannot be read on.
        after: Only rows behind this place.
    """
    query = "SELECT seq, CASE WHEN length(line) <= ? THEN CAST(line AS BLOB) END FROM events WHERE seq > ? ORDER BY seq"
    try:
        with closing(connect(path)) as connection:
            for seq, line in connection.execute(query, (limit, after)):
                if line is None:
                    damaged["too_long"] += 1
                else:
                    yield Row(seq, line)
    except sqlite3.OperationalError as error:
        damaged[_PROBLEMS.get(error.sqlite_errorname, "corrupt")] += 1
    except sqlite3.DatabaseError:
        damaged["corrupt"] += 1


def last_row(path: Path, skip: int = 0) -> int:
    """Return the place of the newest event, 0 where there is none or where it cannot be told now.

    Args:
        path: The database.
        skip: How many newer ones than the one that is meant there are.
    """
    return _place(path, "SELECT seq FROM events ORDER BY seq DESC LIMIT 1 OFFSET ?", skip)


def newest_ever(path: Path) -> int:
    """Return the place of the newest event that there ever was, deleted or not; 0 as for `last_row`."""
    return _place(path, "SELECT seq FROM sqlite_sequence WHERE name = ?", "events")


def _place(path: Path, query: str, argument: int | str) -> int:
    try:
        with closing(connect(path)) as connection:
            found: tuple[int] | None = connection.execute(query, (argument,)).fetchone()
            return found[0] if found else 0
    except sqlite3.DatabaseError:
        return 0


def connect(path: Path) -> sqlite3.Connection:
    """Open for reading; where the folder cannot be written, as a snapshot, since nobody can be writing there."""
    uri = path.absolute().as_uri()
    connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=2.0, check_same_thread=False)
    try:
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorname != "SQLITE_CANTOPEN":
            raise
        return sqlite3.connect(f"{uri}?immutable=1", uri=True, check_same_thread=False)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection
