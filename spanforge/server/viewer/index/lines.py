"""A plain file of lines, read backwards from its end, and forwards from there as it grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from spanforge.exceptions import DecodeError
from spanforge.namespaces.event import Event

__all__ = ["MAX_LINE", "Found", "PlainSource"]

MAX_LINE: Final = 16 << 20
"""Longest line in bytes that is looked at: the reader's own default."""

_BLOCK: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"


class Found(NamedTuple):
    """A line, and where it stands in its source.

    Attributes:
        place: What the source's `lines_at` takes.
        data: The line without its end.
        keep: True where it cannot be read again from its place.
    """

    place: int
    data: bytes
    keep: bool = False


class PlainSource:
    """A jsonl file. Places are offsets; at most one block or one line is in memory.

    Args:
        path: The file.
        block: Bytes read at once.
        max_line: Longest line; longer ones are counted as `too_long` and skipped.
    """

    unit = "bytes"

    def __init__(self, path: Path, *, block: int = _BLOCK, max_line: int = MAX_LINE) -> None:
        self._path, self._block, self._max_line = path, block, max_line
        self.damaged: Counter[str] = Counter()
        self._size = -1
        # What lies from head to tail has been read.
        self._head = self._tail = 0
        # Inside a line that is too long, which is met from either side.
        self._skip_down = self._skip_up = False

    def moved(self, path: Path) -> None:
        """Say where the file is now."""
        self._path = path

    def read(self) -> list[Found]:
        """Return the lines added since the last look, else those of the last block not read yet."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, 2)
                if self._size < 0 or size < self._tail:
                    self._start(file, size)
                self._size = size
                while self._tail < size and (found := self._forward(file, size)) is not None:
                    if found:
                        return found
                while self._head:
                    if found := self._backward(file):
                        return found
        except FileNotFoundError:
            return []
        except OSError:
            self.damaged["unreadable"] = 1
        return []

    def progress(self) -> tuple[int, int]:
        """Return how many bytes have been read, and of how many."""
        return self._tail - self._head, max(0, self._size)

    def lines_at(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return the lines that begin at these offsets."""
        found: dict[int, bytes] = {}
        try:
            with self._path.open("rb") as file:
                for place in places:
                    file.seek(place)
                    found[place] = _bare(file.readline(self._max_line + 1))
        except OSError:
            return found
        return found

    def _start(self, file: BinaryIO, size: int) -> None:
        """Begin behind the last whole line; also where the file was cut down to begin anew."""
        want, end, begin = self._block, 0, size
        while begin and not end and want <= 4 * self._max_line:
            begin = max(0, size - want)
            file.seek(begin)
            end = file.read(size - begin).rfind(b"\n") + 1
            want *= 4
        self._head = self._tail = begin + end if end else 0
        self._skip_down = self._skip_up = False

    def _forward(self, file: BinaryIO, size: int) -> list[Found] | None:
        """Return the lines behind the tail; None where the one there has no end yet."""
        start = self._tail
        file.seek(start)
        data = file.read(self._block)
        while not (end := data.rfind(b"\n") + 1) and len(data) <= self._max_line and start + len(data) < size:
            data += file.read(len(data))
        if not end and not self._skip_up and len(data) <= self._max_line:
            return self._unended(data)
        self._tail += end or len(data)
        begin = 0
        if self._skip_up:
            begin = (data.find(b"\n") + 1) if end else len(data)
        elif not end:
            self.damaged["too_long"] += 1
        self._skip_up = not end
        return self._split(data[begin:end], start + begin)

    def _unended(self, data: bytes) -> list[Found] | None:
        """Take a last line that is whole though it has no end; one that is not is still being written."""
        try:
            Event.decode(_bare(data))
        except DecodeError:
            return None
        start = self._tail
        self._tail += len(data)
        return self._split(data, start)

    def _backward(self, file: BinaryIO) -> list[Found]:
        """Return the lines before the head, which begins a line, or stands inside one to be skipped."""
        if self._skip_down:
            begin, data = self._before(file, self._block)
            end = data.rfind(b"\n") + 1
            self._head = begin + end
            self._skip_down = not end and begin > 0
            return []
        want = self._block
        while True:
            begin, data = self._before(file, want)
            cut = data.find(b"\n") + 1 if begin else 0
            if not begin or 0 < cut < len(data):
                self._head = begin + cut
                return self._split(data[cut:], self._head)
            if want > self._max_line:
                self.damaged["too_long"] += 1
                self._skip_down, self._head = True, begin
                return []
            want *= 4

    def _before(self, file: BinaryIO, want: int) -> tuple[int, bytes]:
        begin = max(0, self._head - want)
        file.seek(begin)
        return begin, file.read(self._head - begin)

    def _split(self, data: bytes, start: int) -> list[Found]:
        """Cut lines, with their offsets; blank ones are left out."""
        found: list[Found] = []
        for line in data.split(b"\n"):
            if len(line) > self._max_line:
                self.damaged["too_long"] += 1
            elif bare := _bare(line):
                found.append(Found(start, bare))
            start += len(line) + 1
        return found


def _bare(line: bytes) -> bytes:
    # A byte order mark begins a file as editors on Windows leave it; no event begins like that.
    return line.strip().removeprefix(_BOM)
