"""A lock between processes, on a file beside the one it guards; the system releases it when its holder dies."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spanforge import _clock

__all__ = ["among_writers", "held", "lock", "unlock", "without_writers"]

_PAUSE_S: Final = 0.001
_REPLACING_S: Final = 2.0
"""Longer than it takes to put another file in place of one; whoever takes longer is stopped, or the disk is."""

if sys.platform == "win32":  # pragma: no cover  measured on POSIX
    import msvcrt

    def lock(fd: int, *, shared: bool = False) -> None:  # noqa: ARG001  there are no shared ones
        """Lock an open file; BlockingIOError or PermissionError where another process has."""
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def unlock(fd: int) -> None:
        """Give up the lock."""
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    @contextmanager
    def among_writers(fd: int, path: Path) -> Generator[None]:
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

    def lock(fd: int, *, shared: bool = False) -> None:
        """Lock an open file; BlockingIOError or PermissionError where another process has."""
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)

    def unlock(fd: int) -> None:
        """Give up the lock."""
        # Said aloud, because a child forked meanwhile holds a copy of the descriptor, and with it the lock.
        fcntl.flock(fd, fcntl.LOCK_UN)

    @contextmanager
    def among_writers(fd: int, path: Path) -> Generator[None]:  # noqa: ARG001  Windows needs it
        """Append to an open file for a block: beside other writers, but not while it is being replaced.

        Raises:
            OSError: It has been on the point of being replaced for two seconds.
        """
        try:
            ours = _lock_within(fd, _REPLACING_S, shared=True)
        except OSError:  # a file system without locks, on which nothing is replaced either
            yield
            return
        if not ours:
            raise BlockingIOError(errno.EAGAIN, "the file is being replaced")
        try:
            yield
        finally:
            unlock(fd)


@contextmanager
def without_writers(fd: int, path: Path, patience_s: float) -> Generator[bool]:
    """Keep all writers from an open file for a block; gives False where one has been writing all the while.

    Raises:
        OSError: The file system has no locks.
    """
    if sys.platform == "win32":  # pragma: no cover  measured on POSIX
        with among_writers(fd, path):
            yield True
        return
    ours = _lock_within(fd, patience_s)
    try:
        yield ours
    finally:
        if ours:
            unlock(fd)


@contextmanager
def held(path: Path, patience_s: float = 0.0) -> Generator[bool]:
    """Hold the lock of the file at `path` for a block; gives False where another process holds it all the while.

    Args:
        path: The file that is guarded.
        patience_s: How long to wait for the other process, in seconds.

    Raises:
        OSError: The lock file cannot be opened.
    """
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        ours = _lock_within(fd, patience_s)
        try:
            yield ours
        finally:
            if ours:
                unlock(fd)
    finally:
        os.close(fd)


def _lock_within(fd: int, patience_s: float, *, shared: bool = False) -> bool:
    deadline = _clock.monotonic() + patience_s
    while True:
        try:
            lock(fd, shared=shared)
        except (BlockingIOError, PermissionError):
            if _clock.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_S)
        else:
            return True
