"""Forks wait for a quiet moment of SQLite.

SQLite's own locks are copied by a fork as they are. One that another thread held just then stays locked in the child
for ever, and the child hangs at its first use of SQLite, on whatever database.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Final

__all__ = ["Quiet"]

_PATIENCE_S: Final = 0.25
"""The longest a fork is held up; a transaction takes milliseconds."""

_all: weakref.WeakSet[Quiet] = weakref.WeakSet()
_held = threading.local()


class Quiet:
    """A lock to hold while SQLite works, and never while one waits."""

    def __init__(self) -> None:
        # Re-entrant: a signal handler may end the SDK while its own thread is inside SQLite.
        self.lock = threading.RLock()
        _all.add(self)

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()

    @staticmethod
    def before_fork() -> None:
        """Wait, but not for long, until no thread is inside SQLite, and keep them out."""
        _held.quiets = [quiet for quiet in list(_all) if quiet.lock.acquire(timeout=_PATIENCE_S)]

    @staticmethod
    def in_parent() -> None:
        """Let them in again."""
        for quiet in _held.quiets:
            quiet.lock.release()
        _held.quiets = []

    @staticmethod
    def in_child() -> None:
        """The threads that might have held a lock are not here."""
        for quiet in list(_all):
            quiet.lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # pragma: no branch  Windows has no fork
    os.register_at_fork(before=Quiet.before_fork, after_in_parent=Quiet.in_parent, after_in_child=Quiet.in_child)
