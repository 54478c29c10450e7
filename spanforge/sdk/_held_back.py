"""What sampling holds back: the stages of sessions that may yet prove worth sending."""

from __future__ import annotations

from spanforge.delivery.queue import EventLog
from spanforge.namespaces.event import Draft
from spanforge.sessions.sampling import always_kept
from spanforge.sessions.table import Session, SessionTable

__all__ = ["HeldBack"]


class HeldBack:
    """Keeps stages of unsampled sessions back until it is known whether the session is sent. Guarded by the log's lock.

    Args:
        table: The sessions.
        log: Takes what is released, and counts what is held and given up.
        keep_grounding_below: A generation grounded worse than this is always sent, with its session.
    """

    def __init__(self, table: SessionTable, log: EventLog, keep_grounding_below: float) -> None:
        self._table = table
        self._log = log
        self._keep_grounding_below = keep_grounding_below

    def take(self, session: Session, draft: Draft) -> None:
        """Hold a stage back; one that is always sent releases its session."""
        if always_kept(draft.event_type, draft.payload, self._keep_grounding_below):
            self.release(session)
            self._log.accept(draft)
        elif self._has_room(session, draft):
            self._table.hold(session, draft)
        else:
            self._log.refuse("sampling_buffer_full")

    def release(self, session: Session) -> None:
        """Send what is held of a session, and all that is to come of it."""
        session.kept = True
        if held := self._table.let_go(session):
            self._log.release(held)

    def give_up(self, session: Session, reason: str) -> None:
        """Count what is held of a session as dropped."""
        if held := self._table.let_go(session):
            self._log.forget(held)
            self._log.refused[reason] += len(held)

    def _has_room(self, session: Session, draft: Draft) -> bool:
        """Count a stage as held back; where that is too much, sessions that idle give up theirs, the idlest first.

        A session that holds more than all others has only itself to make room from: it is the one that is cut.
        """
        while not self._log.hold(draft):
            idlest = self._table.idlest_but(session)
            if idlest is None or len(session.held or ()) > self._log.held // 2:
                return False
            self.give_up(idlest, "sampling_buffer_full")
            idlest.held = []
        return True
