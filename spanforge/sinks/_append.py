"""A file that many processes append whole lines to, none of them waiting for another.

The system makes one `write` on an O_APPEND descriptor one piece of the file (on local file systems; not on NFS).
What it does not promise is that the piece is written to its end: the disk may be full, the process may be killed.
So each append looks at the byte it will follow, and begins on a new line where somebody left a torn one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from spanforge.sinks._lock import among_writers

__all__ = ["AppendFile"]

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


class AppendFile:
    """An open file. It never truncates, and never moves what others wrote.

    Args:
        path: Absolute path. Missing folders are made; a new file is the owner's alone (mode 0600).

    Attributes:
        is_lost: The file had been deleted under us at the last append, so that what was written is nowhere.

    Raises:
        OSError: It cannot be opened.
    """

    __slots__ = ("_fd", "_key", "_path", "_regular", "_torn", "is_lost")

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._fd = os.open(path, _FLAGS, 0o600)
        info = os.fstat(self._fd)
        self._key = _key(info)
        # A pipe or a terminal (`/dev/stderr`) has no offsets to look at: there we know only our own torn lines.
        self._regular = stat.S_ISREG(info.st_mode)
        self._torn = self.is_lost = False

    def is_stale(self) -> bool:
        """Tell whether the path no longer leads to this file, or the descriptor is no longer ours.

        The first is how a rotation by another process shows; the second happens to programs that close every
        descriptor to become a daemon.
        """
        try:
            return not self._is_ours() or _key(self._path.stat()) != self._key
        except OSError:
            return True

    def size(self) -> int:
        """Return the file's length in bytes; 0 for what is not a regular file, which never fills up."""
        return os.fstat(self._fd).st_size if self._regular else 0

    def head(self, length: int) -> bytes:
        """Return the first bytes of a regular file."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        return os.read(self._fd, length)

    def append(self, lines: Sequence[bytes]) -> int:
        """Append lines with one write.

        Args:
            lines: At least one line, each without its line end.

        Returns:
            How many lines from the front are whole in the file, line end included.

        Raises:
            OSError: Nothing was written, or what was written cannot be vouched for.
        """
        if not self._regular:
            return self._append(lines)
        with among_writers(self._fd, self._path):
            whole = self._append(lines)
            # Asked while nobody can put another file here: what is replaced later, has these lines.
            self.is_lost = os.fstat(self._fd).st_nlink == 0 and self.is_stale()
            return whole

    def _append(self, lines: Sequence[bytes]) -> int:
        lead = b"" if self._ends_in_a_line() else b"\n"
        data = lead + b"\n".join([*lines, b""])
        written = os.write(self._fd, data)
        self._torn = data[written - 1 : written] != b"\n"
        whole = len(lines) if written == len(data) else data[len(lead) : written].count(b"\n")
        if self._regular and not lead and not self._is_line_end(os.lseek(self._fd, 0, os.SEEK_CUR) - written):
            # Another process left a torn line between our look and our write: the first line hangs on to it.
            return whole if whole and self._append(lines[:1]) else 0
        return whole

    def sync(self) -> None:
        """Have the system put the file on the disk."""
        if self._regular:
            os.fsync(self._fd)

    def close(self) -> None:
        """Close the descriptor, if it is still ours."""
        if self._is_ours():
            os.close(self._fd)

    def _is_ours(self) -> bool:
        try:
            return _key(os.fstat(self._fd)) == self._key
        except OSError:
            return False

    def _ends_in_a_line(self) -> bool:
        """Tell whether what is appended now begins on a line of its own."""
        if not self._regular:
            return not self._torn
        end = os.lseek(self._fd, 0, os.SEEK_END)
        while not self._is_line_end(end):
            # Torn, or still being written: Linux shows a write page by page. Touching the file waits for the
            # lock that a write holds; if nothing has been added by then, nobody was writing.
            os.utime(self._fd if os.utime in os.supports_fd else self._path)
            seen, end = end, os.lseek(self._fd, 0, os.SEEK_END)
            if seen == end:
                return False
        return True

    def _is_line_end(self, offset: int) -> bool:
        if offset <= 0:
            return True
        os.lseek(self._fd, offset - 1, os.SEEK_SET)
        return os.read(self._fd, 1) == b"\n"


def _key(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino
