"""The open sessions, bounded in number and age, and the summaries of those that ended.

Not locked: the client holds its one lock around every call.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from spanforge import _clock
from spanforge.namespaces.event import Binding, Draft
from spanforge.namespaces.retrieval import EndReason, RAGSessionPayload
from spanforge.sessions.aggregate import Totals

__all__ = ["Session", "SessionTable"]

_MAX_ENDED_IDS: Final = 100_000
"""Chunk ids that all ended sessions remember together."""


class Session:
    """One run, from its first query to its end.

    Attributes:
        held: Stages kept back while the session is not sampled; None where it is.
        kept: True once something in it was reason to send the whole of it, whatever the sample rate.
        parent: `(trace_id, span_id)` of the OpenTelemetry span it began under.
        partial: True where it began in another process.
        query_hash: Digest of the latest query.
        final: The summary, once it has ended.
    """

    __slots__ = (
        "_started_mono",
        "_started_wall",
        "binding",
        "final",
        "held",
        "kept",
        "parent",
        "partial",
        "query_hash",
        "session_id",
        "totals",
        "touched",
    )

    def __init__(self, session_id: str, binding: Binding, id_cap: int) -> None:
        self.session_id = session_id
        self.binding = binding
        self.totals = Totals(id_cap)
        self.query_hash = ""
        self.parent: tuple[str, str] | None = None
        self.partial = False
        self.held: list[Draft] | None = None
        self.kept = False
        self.final: RAGSessionPayload | None = None
        self._started_wall = _clock.wall_ns()
        self._started_mono = self.touched = _clock.monotonic_ns()

    def snapshot(self) -> dict[str, Any]:
        """Return the summary's fields as of now, with start and duration."""
        values = self.totals.summary(self.session_id)
        values["duration_ms"] = self._elapsed_ns() // 1000 / 1000
        values["started_at"] = _clock.timestamp(self._started_wall)
        values["partial_view"] = self.partial
        return values

    def finish(self, reason: EndReason) -> dict[str, Any]:
        """Fix the summary, and return it as an event's payload."""
        values = self.snapshot()
        # The start plus the monotonic duration: a wall clock that was set back cannot make the end precede the start.
        values["ended_at"] = _clock.timestamp(self._started_wall + self._elapsed_ns())
        values["end_reason"] = reason
        self.final = RAGSessionPayload.trusted(values)
        return values

    def _elapsed_ns(self) -> int:
        return max(0, _clock.monotonic_ns() - self._started_mono)


class SessionTable:
    """Sessions by id.

    Args:
        max_open: Open sessions at once.
        retained: Ended sessions remembered.
        idle_s: Seconds without a call after which a session is due to be ended.
        id_cap: Distinct chunk ids each remembers.
    """

    __slots__ = ("_ended", "_ended_ids", "_id_cap", "_idle_ns", "_max_open", "_open", "_retained")

    def __init__(self, *, max_open: int, retained: int, idle_s: float, id_cap: int) -> None:
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._ended: OrderedDict[str, Session] = OrderedDict()
        self._ended_ids = 0
        self.limit(max_open=max_open, retained=retained, idle_s=idle_s, id_cap=id_cap)

    def limit(self, *, max_open: int, retained: int, idle_s: float, id_cap: int) -> None:
        """Change the limits; they hold from the next call on."""
        self._max_open = max_open
        self._retained = retained
        self._idle_ns = int(idle_s * 1e9)
        self._id_cap = id_cap

    def __len__(self) -> int:
        return len(self._open)

    def find(self, session_id: str) -> Session | None:
        """Return an open session and mark it used."""
        session = self._open.get(session_id)
        if session is not None:
            session.touched = _clock.monotonic_ns()
            try:
                self._open.move_to_end(session_id)
            except KeyError:
                # A signal handler ended it in between.
                return None
        return session

    def peek(self, session_id: str) -> Session | None:
        """Return an open session without marking it used."""
        return self._open.get(session_id)

    def open(self, session_id: str, binding: Binding) -> Session:
        """Open a session; one that had ended goes on from where it was, so that its summary covers all of it."""
        session = self._ended.pop(session_id, None)
        if session is None:
            session = Session(session_id, binding, self._id_cap)
        else:
            self._ended_ids -= session.totals.ids
        session.final = None
        session.touched = _clock.monotonic_ns()
        self._open[session_id] = session
        return session

    def end(self, session_id: str) -> Session | None:
        """Close an open session and retain it; None where there is none of that id."""
        session = self._open.pop(session_id, None)
        if session is None:
            return None
        self._ended[session_id] = session
        self._ended_ids += session.totals.ids
        while len(self._ended) > self._retained or (self._ended_ids > _MAX_ENDED_IDS and len(self._ended) > 1):
            _, oldest = self._ended.popitem(last=False)
            self._ended_ids -= oldest.totals.ids
        return session

    def ended(self, session_id: str) -> RAGSessionPayload | None:
        """Return the retained summary of an ended session."""
        session = self._ended.get(session_id)
        return None if session is None else session.final

    def was_kept(self, session_id: str) -> bool:
        """Tell whether an ended session was sent whole, whatever the sample rate."""
        session = self._ended.get(session_id)
        return session is not None and session.kept

    def overdue(self) -> tuple[str, EndReason] | None:
        """Return the session that has to end next, for its idle time or to make room, and why."""
        session_id = self.any_open()
        oldest = None if session_id is None else self._open.get(session_id)
        if oldest is None:
            return None
        if _clock.monotonic_ns() - oldest.touched > self._idle_ns:
            return oldest.session_id, "idle_timeout"
        return (oldest.session_id, "evicted") if len(self._open) > self._max_open else None

    def held(self) -> list[list[Draft]]:
        """Return the lists of stages held back, of every open session that has one."""
        return [session.held for session in self._open.values() if session.held is not None]

    def any_open(self) -> str | None:
        """Return the id of the least recently used open session."""
        while True:
            try:
                return next(iter(self._open), None)
            except RuntimeError:
                # A signal handler traced in between.
                continue
