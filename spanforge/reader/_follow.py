"""Wait for new events, as `tail -F` waits for lines: through rotation, truncation, and a file that is not there yet."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from spanforge.namespaces.event import Event
from spanforge.reader._decode import events_in
from spanforge.reader._lines import SQLITE_MAGIC, LineSplitter
from spanforge.reader._paths import AnyPath, family
from spanforge.reader._store import last_row, rows_of

__all__ = ["follow"]

_CHUNK: Final = 1 << 16


class _Tail(Protocol):
    def poll(self) -> Iterator[bytes]:
        """Give the lines that were added since the last time."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


def follow(
    path: AnyPath,
    *,
    poll_s: float = 0.5,
    from_start: bool = False,
    max_line_bytes: int = 16 << 20,
    damaged: Counter[str] | None = None,
    stop: threading.Event | None = None,
) -> Iterator[Event]:
    """Give events as they are written to a jsonl file or a sqlite store, waiting for more.

    The file may be rotated (by spanforge or by others), truncated, replaced, or made later: every line written to
    it after the first look is given. Damaged lines are skipped.

    Args:
        path: The live file.
        poll_s: Seconds between looks.
        from_start: Give first what is there already.
        max_line_bytes: Longest line; longer ones are skipped.
        damaged: Counts what is skipped, by reason, where given.
        stop: Set from another thread, ends the generator at its next look. In the same thread, close it.
    """
    live, counts = Path(path).expanduser(), Counter[str]() if damaged is None else damaged
    stopped = threading.Event() if stop is None else stop
    # What is not there at the first look is new from its first line, and may be rotated before the second one.
    known = frozenset(_key_of(file) for file in family(live))
    tail = _open(live, live, max_line_bytes, counts, from_start=from_start)
    try:
        while not stopped.is_set():
            if tail is None:
                first = next((file for file in family(live) if _key_of(file) not in known), live)
                tail = _open(live, first, max_line_bytes, counts, from_start=True)
            if tail is not None:
                for line in tail.poll():
                    yield from events_in(line, counts)
            stopped.wait(poll_s)
    finally:
        if tail is not None:
            tail.close()


def _open(live: Path, first: Path, limit: int, damaged: Counter[str], *, from_start: bool) -> _Tail | None:
    """Open the first file to read; None while it is not there, or holds nothing that tells what it will be."""
    try:
        with first.open("rb") as file:
            head = file.read(len(SQLITE_MAGIC))
        if not head:
            return None
        if head == SQLITE_MAGIC:
            return _StoreTail(first, limit, damaged, from_start=from_start)
        return _LineTail(live, first, limit, damaged, from_start=from_start)
    except FileNotFoundError:
        return None


class _StoreTail:
    def __init__(self, path: Path, limit: int, damaged: Counter[str], *, from_start: bool) -> None:
        self._path, self._limit, self._damaged = path, limit, damaged
        self._last = 0 if from_start else last_row(path)

    def poll(self) -> Iterator[bytes]:
        newest = last_row(self._path)
        if newest < self._last:  # another database stands there now, or it cannot be read at the moment
            self._last = 0 if newest else self._last
        for row in rows_of(self._path, self._limit, self._damaged, after=self._last) if newest else ():
            self._last = row.seq
            yield row.line

    def close(self) -> None:
        """Nothing is held between looks."""


class _LineTail:
    def __init__(self, live: Path, first: Path, limit: int, damaged: Counter[str], *, from_start: bool) -> None:
        self._path, self._limit, self._damaged = live, limit, damaged
        self._leaving = False
        self._rotated: frozenset[_Key] = frozenset()
        self._start(first)
        if not from_start:
            self._file.seek(0, os.SEEK_END)

    def _start(self, path: Path) -> None:
        self._file = path.open("rb")
        self._splitter = LineSplitter(self._limit, self._damaged)

    def poll(self) -> Iterator[bytes]:
        while True:
            while chunk := self._file.read(_CHUNK):
                for line in self._splitter.feed(chunk):
                    yield line.data
            following = self._following()
            if following is None:
                return
            for line in self._splitter.end():
                yield line.data
            before = self._file
            try:
                self._start(following)
            except FileNotFoundError:  # renamed just now: the next look finds it
                return
            before.close()

    def close(self) -> None:
        self._file.close()

    def _following(self) -> Path | None:
        """Return the file to read next, None to stay with this one."""
        info = os.fstat(self._file.fileno())
        live, own = _key_of(self._path), _key(info)
        if live is None:
            return None
        if live == own:
            # Cut down to nothing and begun again, as some rotate: what is there now is new.
            return self._path if info.st_size < self._file.tell() else None
        keys = {_key_of(file): file for file in family(self._path)}
        if not self._leaving:
            # One more look, for who has not noticed the rotation yet and still writes to an old file.
            self._leaving, self._rotated = True, frozenset(key for key in keys if key and key != live)
            return None
        order = list(keys)
        following = order[order.index(own) + 1] if own in order[:-1] else live
        self._leaving = following in self._rotated
        return keys.get(following, self._path)


_Key: TypeAlias = tuple[int, int]


def _key(info: os.stat_result) -> _Key:
    return info.st_dev, info.st_ino


def _key_of(path: Path) -> _Key | None:
    try:
        return _key(path.stat())
    except FileNotFoundError:
        return None
