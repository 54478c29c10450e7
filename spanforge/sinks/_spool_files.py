"""The files of a spool: segments of event lines in one folder, oldest first.

A segment belongs to the process that writes it, which holds a lock on it while it lives. What a dead process
left behind is anybody's: whoever gets the lock drains it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from spanforge import _clock
from spanforge.exceptions import DecodeError
from spanforge.namespaces.event import PRUNED, Event
from spanforge.sinks._lock import lock, unlock

__all__ = ["Segment", "adopt", "begin", "left_behind"]

_SUFFIX: Final = ".spool.jsonl"
_BINARY: Final = getattr(os, "O_BINARY", 0)
_READ_BYTES: Final = 8 << 20
_NS: Final = 1_000_000_000


class Segment:
    """One file of the spool, open and locked.

    Args:
        path: The file.
        fd: Its descriptor.
        ours: True where this process wrote it, so that its events are in this process's ledger.

    Attributes:
        waiting: Events of ours in it that are not settled; not known of another process's.
        size: Bytes in it.
    """

    def __init__(self, path: Path, fd: int, *, ours: bool) -> None:
        self.path = path
        self.ours = ours
        self.waiting = 0
        self.size = os.fstat(fd).st_size
        self._fd = fd
        self._offset = 0

    @property
    def drained(self) -> bool:
        """True where nothing in it waits."""
        return self._offset >= self.size

    def is_older_than(self, seconds: float) -> bool:
        """Tell whether it was begun more than `seconds` ago."""
        head = self.path.name.partition("-")[0]
        return head.isdigit() and _clock.wall_ns() - int(head) > seconds * _NS

    def append(self, lines: Sequence[bytes]) -> int:
        """Append lines; return how many are whole in the file.

        Raises:
            OSError: The disk took none of them.
        """
        data = b"\n".join([*lines, b""])
        os.lseek(self._fd, self.size, os.SEEK_SET)
        written = os.write(self._fd, data)
        kept = data.rfind(b"\n", 0, written) + 1
        if kept < written:
            # A torn line would stand in front of the next one.
            os.ftruncate(self._fd, self.size + kept)
        self.size += kept
        whole = data.count(b"\n", 0, kept)
        self.waiting += whole
        return whole

    def peek(self, limit: int) -> tuple[list[Event], list[int]]:
        """Return the next events and where each of them ends; damaged lines and tombstones are passed over."""
        os.lseek(self._fd, self._offset, os.SEEK_SET)
        data = os.read(self._fd, min(_READ_BYTES, self.size - self._offset))
        events: list[Event] = []
        ends: list[int] = []
        end = self._offset
        for line in data.splitlines(keepends=True):
            end += len(line)
            if not line.endswith(b"\n") and end < self.size:
                break
            event = _event_of(line)
            if event is None:
                if not events:
                    self._offset = end
                continue
            events.append(event)
            ends.append(end)
            if len(events) >= limit:
                break
        return events, ends

    def settle(self, count: int, end: int) -> None:
        """Go on after `count` events, the last of which ended at `end`."""
        self._offset = end
        if self.ours:
            self.waiting -= count

    def close(self) -> None:
        """Give up the lock and close the file; what waits stays in it."""
        unlock(self._fd)
        os.close(self._fd)

    def reopen(self, fd: int) -> None:
        """Go on where it was left, with a new descriptor."""
        self._fd = fd

    def leave_to_parent(self) -> None:
        """Close a forked child's copy; the lock stays with the parent."""
        os.close(self._fd)

    def delete(self) -> None:
        """Delete the file."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.close()


def begin(folder: Path) -> Segment:
    """Begin a segment of this process; folder and file are the owner's alone.

    Raises:
        OSError: It cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{_clock.wall_ns():020d}-{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
    lock(fd)
    return Segment(path, fd, ours=True)


def left_behind(folder: Path) -> list[Path]:
    """Return the segments in a folder, oldest first.

    Raises:
        OSError: The folder cannot be read.
    """
    return sorted(folder.glob(f"*{_SUFFIX}")) if folder.is_dir() else []


def adopt(path: Path) -> int | None:
    """Open and lock a segment; None where its owner lives, or it is gone.

    Raises:
        OSError: It cannot be opened.
    """
    try:
        fd = os.open(path, os.O_RDWR | _BINARY)
    except FileNotFoundError:
        return None
    try:
        lock(fd)
    except (BlockingIOError, PermissionError):
        os.close(fd)
        return None
    if os.fstat(fd).st_nlink == 0:
        # Its owner drained and deleted it between our look and our lock.
        os.close(fd)
        return None
    return fd


def _event_of(line: bytes) -> Event | None:
    with suppress(DecodeError):
        event = Event.decode(line)
        return None if event.event_type == PRUNED else event
    return None
