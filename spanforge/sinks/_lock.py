"""A lock between processes, on a file beside the one it guards; the system releases it when its holder dies."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

__all__ = ["alone", "held", "lock", "unlock"]

if sys.platform == "win32":  # pragma: no cover  measured on POSIX
    import msvcrt

    def lock(fd: int) -> None:
        """Lock an open file; BlockingIOError or PermissionError where another process has."""
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def unlock(fd: int) -> None:
        """Give up the lock."""
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    @contextmanager
    def alone(path: Path) -> Generator[None]:
        """Wait for the lock: Windows appends by seeking first, so two processes could write to the same place.

        Raises:
            OSError: The lock could not be had within ten seconds.
        """
        fd = os.open(f"{path}.write.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
            try:
                yield
            finally:
                unlock(fd)
        finally:
            os.close(fd)

else:
    import fcntl

    def lock(fd: int) -> None:
        """Lock an open file; BlockingIOError or PermissionError where another process has."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def unlock(fd: int) -> None:
        """Give up the lock."""
        # Said aloud, because a child forked meanwhile holds a copy of the descriptor, and with it the lock.
        fcntl.flock(fd, fcntl.LOCK_UN)

    def alone(path: Path) -> AbstractContextManager[None]:  # noqa: ARG001  Windows needs it
        """Wait for nobody: the system itself appends each write as one piece."""
        return nullcontext()


@contextmanager
def held(path: Path) -> Generator[bool]:
    """Hold the lock of the file at `path` for a block; gives False at once where another process holds it.

    Raises:
        OSError: The lock file cannot be opened.
    """
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            lock(fd)
        except (BlockingIOError, PermissionError):
            yield False
            return
        try:
            yield True
        finally:
            unlock(fd)
    finally:
        os.close(fd)
