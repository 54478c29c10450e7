"""Where events come from: one source for each file, newest events first, then those that are added.

Newest first, because the first screen shows the newest sessions: it does not wait for the years before them.
"""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, Protocol

from spanforge.exceptions import MissingExtraError
from spanforge.reader import read_events
from spanforge.reader._lines import SQLITE_MAGIC
from spanforge.server.viewer.index.lines import MAX_LINE, Found, PlainSource

__all__ = ["PackedSource", "Source", "SqliteSource", "source_of"]

_BATCH: Final = 1_000
_FIRST_BATCH: Final = 400
"""Events of the first look, so that the first screen, of fifty sessions, waits for little more."""

_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class Source(Protocol):
    """A file of events.

    Attributes:
        damaged: What could not be read, by reason.
        unit: What `progress` counts: `bytes` or `events`.
    """

    damaged: Counter[str]
    unit: str

    def read(self) -> list[Found]:
        """Return some lines not returned before; none where there are none now."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return how much has been read, and of how much."""
        ...

    def lines_at(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return lines again, by place; those that are gone are left out."""
        ...

    def moved(self, path: Path) -> None:
        """Say where the file is now: a live file that was rotated has another name."""
        ...


class SqliteSource:
    """A database of the sqlite sink, opened for reading for each look, so that its writers are never in the way."""

    unit = "events"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.damaged: Counter[str] = Counter()
        self._low = self._high = self._first = -1

    def moved(self, path: Path) -> None:
        """Say where the file is now."""
        self._path = path

    def read(self) -> list[Found]:
        """Return the next rows: those added since the last look, else the newest ones not read yet."""
        try:
            with closing(_read_only(self._path)) as connection:
                return self._read(connection)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname == "SQLITE_ERROR":
                self.damaged["not_a_store"] = 1
        except sqlite3.DatabaseError:
            self.damaged["corrupt"] = 1
        return []

    def _read(self, connection: sqlite3.Connection) -> list[Found]:
        if self._high < 0:
            # Asked apart, each is one step into the table; together they would be a walk through all of it.
            first, last = (connection.execute(f"SELECT {m}(seq) FROM events").fetchone()[0] for m in ("min", "max"))
            self._first, self._high, self._low = first or 1, last or 0, (last or 0) + 1
            limit = _FIRST_BATCH
        else:
            limit = _BATCH
        query = "SELECT seq, CASE WHEN length(line) <= ? THEN CAST(line AS BLOB) END FROM events WHERE seq"
        rows = connection.execute(f"{query} > ? ORDER BY seq LIMIT ?", (MAX_LINE, self._high, limit)).fetchall()
        if rows:
            self._high = rows[-1][0]
        elif self._low > self._first:
            rows = connection.execute(f"{query} < ? ORDER BY seq DESC LIMIT ?", (MAX_LINE, self._low, limit)).fetchall()
            self._low = rows[-1][0] if rows else self._first
        self.damaged["too_long"] += sum(line is None for _, line in rows)
        return [Found(seq, line) for seq, line in rows if line is not None]

    def progress(self) -> tuple[int, int]:
        """Return how many rows have been read, and of how many."""
        return (self._high - self._low + 1, self._high - self._first + 1) if self._high > 0 else (0, 0)

    def lines_at(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return the lines of rows again."""
        query = "SELECT CAST(line AS BLOB) FROM events WHERE seq = ?"
        found: dict[int, bytes] = {}
        try:
            with closing(_read_only(self._path)) as connection:
                for place in places:
                    if row := connection.execute(query, (place,)).fetchone():
                        found[place] = row[0]
        except sqlite3.DatabaseError:
            return found
        return found


class PackedSource:
    """A compressed file, which nobody writes any more. Its lines are kept: there is no way back to one of them."""

    unit = "bytes"

    def __init__(self, path: Path) -> None:
        self.damaged: Counter[str] = Counter()
        self._size = path.stat().st_size
        self._done = 0
        self._reader = read_events(path)
        self._lines = self._read_all()

    def moved(self, path: Path) -> None:
        """Nothing to do: what was read is kept."""

    def _read_all(self) -> Iterator[Found]:
        try:
            for number, event in enumerate(self._reader):
                yield Found(number, event.encode(), keep=True)
        except MissingExtraError:
            self.damaged["needs the 'zstd' extra"] = 1
        except OSError:
            self.damaged["unreadable"] = 1

    def read(self) -> list[Found]:
        """Return the next lines."""
        found = [line for line, _ in zip(self._lines, range(_BATCH), strict=False)]
        self.damaged.update(self._reader.damaged)
        self._reader.damaged.clear()
        if not found:
            self._done = self._size
        return found

    def progress(self) -> tuple[int, int]:
        """Return the size of the file twice once it has been read."""
        return self._done, self._size

    def lines_at(self, places: Sequence[int]) -> dict[int, bytes]:  # noqa: ARG002  the Protocol's
        """Nothing: the index has the lines."""
        return {}


def source_of(path: Path) -> Source | None:
    """Return the source for a file, told by its first bytes; None where there is nothing to tell it by yet."""
    try:
        with path.open("rb") as file:
            head = file.read(len(SQLITE_MAGIC))
    except OSError:
        return None
    if not head:
        return None
    if head == SQLITE_MAGIC:
        return SqliteSource(path)
    return PackedSource(path) if head.startswith(_PACKED) else PlainSource(path)


def _read_only(path: Path) -> sqlite3.Connection:
    """Open a database for reading; as a snapshot where its folder cannot be written, since nobody writes there."""
    mode = "mode=ro" if os.access(path.parent, os.W_OK) else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=2.0)
