"""What a file of events has gained since it was last read: marks to go on from, kept by whoever reads again."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from spanforge.reader.contents import HEAD_BYTES, is_whole, stored_lines
from spanforge.reader.lines import SQLITE_MAGIC, Line, LineSplitter
from spanforge.reader.paths import File
from spanforge.reader.store import last_row, rows_of

__all__ = ["Mark", "last_lines", "line_start", "lines_since", "mark", "start_of_last", "unread"]

_HEAD: Final = 4096
_CHUNK: Final = 1 << 18


class Mark(NamedTuple):
    """How far a file was read.

    Attributes:
        inode: Which file it is, whatever its name is by now.
        offset: Where its unread part begins: a byte, in a store of events a row.
        head: Digest of its first bytes: another file may have come to stand there.
        head_bytes: How many those are.
    """

    inode: int
    offset: int = 0
    head: str = ""
    head_bytes: int = 0

    def holds(self, path: File) -> bool:
        """Tell whether a file is the one that was read, and has lost nothing of what was read."""
        now = path.stat()
        if now.st_ino != self.inode:
            return False
        with path.open("rb") as stream:
            start = stream.read(self.head_bytes)
        if isinstance(path, Path) and start.startswith(SQLITE_MAGIC):
            # A database changes its first page as it is written to; what it keeps is its rows.
            return last_row(path) >= self.offset
        return now.st_size >= self.offset and _digest(start) == self.head


def mark(path: File, offset: int) -> Mark:
    """Return the mark of a file that was read up to here."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    head = head if head.startswith(SQLITE_MAGIC) else head[:offset]
    return Mark(path.stat().st_ino, offset, _digest(head), len(head))


def unread(path: File) -> int:
    """Return where reading will stop now: behind the last line that has an end, so that no half line is taken."""
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        if isinstance(path, Path) and head == SQLITE_MAGIC:
            return last_row(path)
        size = stream.seek(0, 2)
        return size if is_whole(head) else _behind_line_end(stream, size, 1)


def lines_since(path: File, start: int, end: int, limit: int, damaged: Counter[str]) -> Iterator[Line]:
    """Give the lines between two offsets of a file; one that cannot be read from its middle is read whole.

    Args:
        path: The file.
        start: Where its unread part begins.
        end: What `unread` said.
        limit: Longest line in bytes.
        damaged: Counts what cannot be had.
    """
    with path.open("rb") as stream:
        head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
        if not is_whole(head):
            yield from _slice(stream, start, end, LineSplitter(limit, damaged))
            return
    if isinstance(path, Path) and head == SQLITE_MAGIC:
        with closing(rows_of(path, limit, damaged, after=start)) as rows:
            for row in rows:
                if row.seq <= end:
                    yield Line(row.line, ended=True)
    else:
        yield from stored_lines(path, limit, damaged)


def last_lines(files: Sequence[File], count: int, limit: int, damaged: Counter[str]) -> Iterator[Line]:
    """Give the last lines of some files, reading no others of those that can be read from their middle.

    Args:
        files: Oldest first.
        count: How many, from 1 up.
        limit: Longest line in bytes.
        damaged: Counts what cannot be had.
    """
    found: list[deque[Line]] = []
    for file in reversed(files):
        lines = lines_since(file, start_of_last(file, count), unread(file), limit, damaged)
        found.append(deque(lines, count))
        count -= len(found[-1])
        if not count:
            break
    for part in reversed(found):
        yield from part


def start_of_last(file: File, count: int) -> int:
    """Return the offset at which the last whole lines of a file begin, as `lines_since` takes it.

    It is 0 where the file has no more lines, or can be read only from its start.

    Args:
        file: The file.
        count: How many lines, from 1 up.
    """
    with file.open("rb") as stream:
        head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
        if isinstance(file, Path) and head == SQLITE_MAGIC:
            return last_row(file, count)
        return 0 if is_whole(head) else line_start(stream, count)


def line_start(stream: BinaryIO, count: int) -> int:
    """Return where the last whole lines of an open file begin."""
    end = _behind_line_end(stream, stream.seek(0, 2), 1)
    return _behind_line_end(stream, end - 1, count)


def _slice(stream: BinaryIO, start: int, end: int, splitter: LineSplitter) -> Iterator[Line]:
    stream.seek(start)
    left = end - start
    while chunk := stream.read(min(_CHUNK, left)):
        left -= len(chunk)
        yield from splitter.feed(chunk)


def _behind_line_end(stream: BinaryIO, end: int, number: int) -> int:
    """Return the offset behind a line end, counted back from a place; 0 where there are not so many."""
    while end > 0:
        start = max(0, end - _CHUNK)
        stream.seek(start)
        chunk = stream.read(end - start)
        found = len(chunk)
        while (found := chunk.rfind(b"\n", 0, found)) >= 0:
            number -= 1
            if not number:
                return start + found + 1
        end = start
    return 0


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()
