"""Blocks of sessions that are left while answers that began in them are yet to be read: they wait for those."""

from __future__ import annotations

from contextlib import AbstractContextManager

from spanforge.sessions.table import SessionTable

__all__ = ["Blocks"]


class Blocks:
    """Which sessions' blocks wait, and with which error each was left.

    Args:
        lock: The client's, which is not held here while a session ends.
        table: Its sessions.
    """

    def __init__(self, lock: AbstractContextManager[bool], table: SessionTable) -> None:
        self._lock = lock
        self._table = table

    def hold(self, session_id: str) -> None:
        """Have a session's block wait for what begins in it now: a run whose answer may be read after the block."""
        with self._lock:
            if (session := self._table.peek(session_id)) is not None:
                session.awaited += 1

    def leave(self, session_id: str, error_type: str) -> bool:
        """Tell whether a session whose block is left, with an error or "", has to wait; else it is to be ended."""
        with self._lock:
            session = self._table.peek(session_id)
            if session is None or not session.awaited:
                return False
            session.left = error_type
            return True

    def release(self, session_id: str) -> str | None:
        """Say that what a block would wait for has ended.

        Returns:
            The error with which the session is to be ended, "" where there was none; None where it goes on.
        """
        with self._lock:
            session = self._table.peek(session_id)
            if session is None or not session.awaited:
                return None
            session.awaited -= 1
            return None if session.awaited else session.left

    def enter_again(self, session_id: str) -> None:
        """Say that a session whose block may have been left has another, which ends it."""
        with self._lock:
            if (session := self._table.peek(session_id)) is not None:
                session.left = None
