"""Wait for new events, as `tail -F` waits for lines: through rotation, pruning, truncation, and a file yet to come."""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from spanforge.namespaces.event import Event
from spanforge.reader.decoding import events_in
from spanforge.reader.growth import line_start
from spanforge.reader.lines import SQLITE_MAGIC, LineSplitter
from spanforge.reader.paths import AnyPath, family
from spanforge.reader.store import last_row, newest_ever, rows_of

__all__ = ["follow"]

_CHUNK: Final = 1 << 16
_REMEMBERED: Final = 1000
"""Lines by which the place is found again in a file that has lost some."""
_SEEN_BYTES: Final = 1 << 14
"""Enough for an event with its id, which no other has."""


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
    last: int = 0,
    max_line_bytes: int = 16 << 20,
    damaged: Counter[str] | None = None,
    stop: threading.Event | None = None,
) -> Iterator[Event]:
    """Give events as they are written to a jsonl file or a sqlite store, waiting for more.

    The file may be rotated (by spanforge or by others), pruned, truncated, replaced, or made later: every line written
    to it after the first look is given, and none twice where a prune leaves one of the last thousand. Damaged lines are
    skipped.

    Args:
        path: The live file.
        poll_s: Seconds between looks.
        from_start: Give first what is there already.
        last: Give first so many of the newest lines of the file.
        max_line_bytes: Longest line; longer ones are skipped.
        damaged: Counts what is skipped, by reason, where given.
        stop: Set from another thread, ends the generator at its next look. In the same thread, close it.
    """
    live, counts = Path(path).expanduser(), Counter[str]() if damaged is None else damaged
    stopped = threading.Event() if stop is None else stop
    # What is not there at the first look is new from its first line, and may be rotated before the second one.
    known = frozenset(_key_of(file) for file in family(live))
    tail = _open(live, live, max_line_bytes, counts, last=None if from_start else last)
    try:
        while not stopped.is_set():
            if tail is None:
                first = next((file for file in family(live) if _key_of(file) not in known), live)
                tail = _open(live, first, max_line_bytes, counts, last=None)
            if tail is not None:
                for line in tail.poll():
                    yield from events_in(line, counts)
            stopped.wait(poll_s)
    finally:
        if tail is not None:
            tail.close()


def _open(live: Path, first: Path, limit: int, damaged: Counter[str], *, last: int | None) -> _Tail | None:
    """Open the first file to read, for its last lines or all of them.

    None while it is not there, or holds nothing that tells what it will be.
    """
    try:
        with first.open("rb") as file:
            head = file.read(len(SQLITE_MAGIC))
        if not head:
            return None
        if head == SQLITE_MAGIC:
            return _StoreTail(first, limit, damaged, last=last)
        return _LineTail(live, first, limit, damaged, last=last)
    except FileNotFoundError:
        return None


class _StoreTail:
    def __init__(self, path: Path, limit: int, damaged: Counter[str], *, last: int | None) -> None:
        self._path, self._limit, self._damaged = path, limit, damaged
        self._last = 0 if last is None else last_row(path, last)

    def poll(self) -> Iterator[bytes]:
        newest = newest_ever(self._path)
        if newest < self._last:  # another database stands there now, or it cannot be read at the moment
            self._last = 0 if newest else self._last
        for row in rows_of(self._path, self._limit, self._damaged, after=self._last) if newest else ():
            self._last = row.seq
            yield row.line

    def close(self) -> None:
        """Nothing is held between looks."""


class _LineTail:
    def __init__(self, live: Path, first: Path, limit: int, damaged: Counter[str], *, last: int | None) -> None:
        self._path, self._limit, self._damaged = live, limit, damaged
        self._leaving = False
        self._rotated: frozenset[_Key] = frozenset()
        self._given: deque[int] = deque(maxlen=_REMEMBERED)
        self._start(first)
        if last is not None:
            self._begin_with(last)

    def _begin_with(self, last: int) -> None:
        """Go to the last lines, and remember those before them."""
        place = line_start(self._file, last) if last else self._file.seek(0, os.SEEK_END)
        self._file.seek(line_start(self._file, last + _REMEMBERED))
        self._given.extend(map(hash, self._file.read(max(0, place - self._file.tell())).split(b"\n")[:-1]))
        length = min(place, _SEEN_BYTES)
        self._file.seek(place - length)
        self._seen = self._file.read(length)

    def _behind_given(self) -> int:
        """Return where the file goes on behind what was given; 0 where nothing in it was."""
        given, place, at = set(self._given), 0, 0
        for line in self._file:
            at += len(line)
            if hash(line.removesuffix(b"\n")) in given:
                place = at
        return place

    def _start(self, path: Path) -> None:
        self._file = path.open("rb")
        self._splitter = LineSplitter(self._limit, self._damaged)
        self._seen = b""

    def poll(self) -> Iterator[bytes]:
        before = self._file
        with suppress(FileNotFoundError):  # renamed just now
            if self._is_begun_anew():
                self._start(self._path)
                before.close()
        yield from self._read_on()

    def _is_begun_anew(self) -> bool:
        """Tell whether the file was cut down and has grown beyond the place since: other bytes stand before it."""
        fd, place = self._file.fileno(), self._file.tell() - len(self._seen)
        if _key(os.fstat(fd)) != _key_of(self._path) or not hasattr(os, "pread"):
            return False
        return os.pread(fd, len(self._seen), place) != self._seen

    def _read_on(self) -> Iterator[bytes]:
        while True:
            while chunk := self._file.read(_CHUNK):
                self._seen = (self._seen + chunk)[-_SEEN_BYTES:]
                for line in self._splitter.feed(chunk):
                    self._given.append(hash(line.data))
                    yield line.data
            following = self._following()
            if following is None:
                return
            for line in self._splitter.end():
                yield line.data
            before, is_gone = self._file, os.fstat(self._file.fileno()).st_nlink == 0
            try:
                self._start(following)
                if is_gone:
                    self._file.seek(self._behind_given())
            except FileNotFoundError:  # renamed just now: the next look finds it
                return
            before.close()

    def close(self) -> None:
        self._file.close()

    def _following(self) -> Path | None:
        """Return the file to read next, None to stay with this one."""
        info = os.fstat(self._file.fileno())
        live, own = _key_of(self._path), _key(info)
        if live == own:
            # Cut down to nothing and begun again, as some rotate: what is there now is new.
            return self._path if info.st_size < self._file.tell() else None
        keys = _keys(self._path)
        if list(keys) != list(_keys(self._path)):  # one is renamed just now, and may be missing here: look again
            return None
        if not self._leaving:
            # One more look, for who has not noticed the rotation yet and still writes to an old file.
            self._leaving, self._rotated = True, frozenset(key for key in keys if key and key != live)
            return None
        order = list(keys)
        following = order[order.index(own) + 1] if own in order[:-1] else live
        self._leaving = following in self._rotated
        return None if following is None else keys.get(following, self._path)


_Key: TypeAlias = tuple[int, int]


def _key(info: os.stat_result) -> _Key:
    return info.st_dev, info.st_ino


def _keys(live: Path) -> dict[_Key | None, Path]:
    return {_key_of(file): file for file in family(live)}


def _key_of(path: Path) -> _Key | None:
    try:
        return _key(path.stat())
    except FileNotFoundError:
        return None
