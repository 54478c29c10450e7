"""Lines out of a database of the sqlite sink, without disturbing whoever writes it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

__all__ = ["Row", "last_row", "rows_of"]


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
        damaged: Counts those, and once `corrupt` or `not_a_store` where the database cannot be read on.
        after: Only rows behind this place.
    """
    query = "SELECT seq, CASE WHEN length(line) <= ? THEN CAST(line AS BLOB) END FROM events WHERE seq > ? ORDER BY seq"
    try:
        with closing(_connect(path)) as connection:
            for seq, line in connection.execute(query, (limit, after)):
                if line is None:
                    damaged["too_long"] += 1
                else:
                    yield Row(seq, line)
    except sqlite3.OperationalError as error:
        damaged["not_a_store" if error.sqlite_errorname == "SQLITE_ERROR" else "corrupt"] += 1
    except sqlite3.DatabaseError:
        damaged["corrupt"] += 1


def last_row(path: Path) -> int:
    """Return the place of the newest event, 0 where there is none or where it cannot be told now."""
    try:
        with closing(_connect(path)) as connection:
            return connection.execute("SELECT max(seq) FROM events").fetchone()[0] or 0
    except sqlite3.DatabaseError:
        return 0


def _connect(path: Path) -> sqlite3.Connection:
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
