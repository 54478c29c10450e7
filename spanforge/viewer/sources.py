"""Files that are no store of today's shape, read a part at a time and on as they grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from spanforge.exceptions import DecodeError, MissingExtraError
from spanforge.namespaces.event import Event
from spanforge.reader import read_events
from spanforge.reader.contents import is_whole
from spanforge.reader.decoding import events_in
from spanforge.reader.lines import SQLITE_MAGIC, LineSplitter
from spanforge.reader.store import last_row, rows_of

__all__ = ["Source", "source_of"]

_MAX_LINE: Final = 16 << 20
_BLOCK: Final = 1 << 18
_ROWS: Final = 400


class Source(Protocol):
    """A file of events.

    Attributes:
        path: Where it is now: a live file that was rotated has another name.
        damaged: What could not be read, by reason.
        unit: What `progress` counts: `bytes` or `events`.
    """

    path: Path
    damaged: Counter[str]
    unit: str

    def read(self) -> list[Event] | None:
        """Return some events not returned before; None where nothing has been added."""
        ...

    def progress(self) -> tuple[int, int]:
        """Return how much has been read, and of how much."""
        ...


class _Plain:
    """A jsonl file; at most one block and one line are in memory."""

    unit = "bytes"

    def __init__(self, path: Path) -> None:
        self.path, self.damaged = path, Counter[str]()
        self._restart()
        self._size = 0

    def read(self) -> list[Event] | None:
        chunk = b""
        try:
            with self.path.open("rb") as file:
                self._size = file.seek(0, 2)
                if self._size < self._at:
                    # Cut down, to begin anew. What was read stays; what comes again is known by its id.
                    self._restart()
                file.seek(self._at)
                chunk = file.read(_BLOCK)
        except FileNotFoundError:
            return None
        except OSError:
            self.damaged["unreadable"] = 1
        if not chunk:
            return self._unended()
        self._at += len(chunk)
        return [event for line in self._splitter.feed(chunk) for event in events_in(line.data, self.damaged)]

    def progress(self) -> tuple[int, int]:
        whole = 0 if self._looked_at == self._at else len(self._splitter.pending)
        return self._at - whole, self._size

    def _restart(self) -> None:
        self._splitter = LineSplitter(_MAX_LINE, self.damaged)
        self._at = 0
        self._looked_at = -1

    def _unended(self) -> list[Event] | None:
        """Take a last line that is whole though it has no end; one that is not is still being written."""
        if not self._splitter.pending or self._looked_at == self._at:
            return None
        try:
            event = Event.decode(self._splitter.pending)
        except DecodeError:
            return None
        self._looked_at = self._at
        return [event]


class _Rows:
    """A sqlite store of an older or newer shape, or one among other files."""

    unit = "events"

    def __init__(self, path: Path) -> None:
        self.path, self.damaged = path, Counter[str]()
        self._last = self._newest = 0

    def read(self) -> list[Event] | None:
        self._newest = last_row(self.path) or self._newest
        found, read, damaged = list[Event](), 0, Counter[str]()
        rows = rows_of(self.path, _MAX_LINE, damaged, after=self._last)
        for row in islice(rows, _ROWS):
            read, self._last = read + 1, row.seq
            found += events_in(row.line, damaged)
        rows.close()
        self._count(damaged)
        return found if read else None

    def progress(self) -> tuple[int, int]:
        return self._last, self._newest

    def _count(self, damaged: Counter[str]) -> None:
        for reason, times in damaged.items():
            # A file that cannot be read is met again with each look.
            whole_file = reason in {"corrupt", "locked", "not_a_store"}
            self.damaged[reason] = 1 if whole_file else self.damaged[reason] + times


class _Whole:
    """A file that can be read only from its start, compressed or a table, which nobody writes any more."""

    unit = "bytes"

    def __init__(self, path: Path) -> None:
        self.path, self.damaged = path, Counter[str]()
        self._size = path.stat().st_size
        self._done = 0
        self._events = self._all()

    def read(self) -> list[Event] | None:
        found = list(islice(self._events, _ROWS))
        if not found:
            self._done = self._size
        return found or None

    def progress(self) -> tuple[int, int]:
        return self._done, self._size

    def _all(self) -> Iterator[Event]:
        reader = read_events(self.path)
        self.damaged = reader.damaged
        try:
            yield from reader
        except MissingExtraError as error:
            self.damaged[f"needs the '{error.extra}' extra"] = 1
        except OSError:
            self.damaged["unreadable"] = 1


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
        return _Rows(path)
    return _Whole(path) if is_whole(head) else _Plain(path)
