"""The open sessions, bounded in number and age, and the summaries of those that ended.

Not locked: the client holds its one lock around every call.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from spanforge import _clock
from spanforge._text import first
from spanforge.namespaces.event import Binding, Draft, Parent
from spanforge.namespaces.retrieval import EndReason, RAGSessionPayload
from spanforge.sessions.fold import Room, Totals

__all__ = ["Session", "SessionTable"]

_MAX_ENDED_IDS: Final = 100_000
"""Chunk ids that all ended sessions remember together."""
_FORGOTTEN_AT_ONCE: Final = 8
_SPARE: Final = 8
"""One part in so many of the chunk ids is kept free for sessions that begin."""
_MAX_ASKED: Final = 16
"""Queries of one session that are known again."""


class Session:
    """One run, from its first query to its end.

    Attributes:
        name: The id by which the application knows it.
        run: How many runs of that name there were, this one included.
        session_id: The id that its events carry: its name, and of a later run its number too.
        conversation: The conversation it is a turn of, where that is not its own name.
        held: Stages kept back while the session is not sampled; None where it is.
        kept: True once something in it was reason to send the whole of it, whatever the sample rate.
        parent: The span it began under.
        partial: True where it began in another process.
        asked: Digests of its latest queries, the last one last.
        awaited: How many runs of frameworks in it are under way.
        left: The class of the error that its block was left with, empty where there was none; None while it was not
            left, and where nothing was awaited then.
        shown: What the client keeps of its lists while it is open.
        final: The summary, once it has ended.
    """

    __slots__ = (
        "_started_mono",
        "_started_wall",
        "asked",
        "awaited",
        "binding",
        "conversation",
        "final",
        "held",
        "kept",
        "left",
        "name",
        "parent",
        "partial",
        "run",
        "session_id",
        "shown",
        "totals",
        "touched",
    )

    def __init__(self, name: str, binding: Binding, totals: Totals, before: Session | None = None) -> None:
        self.name = name
        self.run = before.run + 1 if before else 1
        self.session_id = f"{name}~{self.run}" if before else name
        self.conversation = (before.conversation or name) if before else ""
        self.binding = binding
        self.totals = totals
        self.asked: tuple[str, ...] = ()
        self.shown: Any = None
        self.awaited = 0
        self.left: str | None = None
        self.parent: Parent | None = None
        self.partial = False
        self.held: list[Draft] | None = None
        self.kept = False
        self.final: RAGSessionPayload | None = None
        self._started_wall = _clock.wall_ns()
        self._started_mono = self.touched = _clock.monotonic_ns()

    @property
    def query_hash(self) -> str:
        """Digest of the latest query; empty where there is none."""
        return self.asked[-1] if self.asked else ""

    def ask(self, query_hash: str) -> None:
        """Remember a query."""
        if query_hash not in self.asked[-1:]:
            self.asked = (*self.asked, query_hash)[-_MAX_ASKED:]

    def snapshot(self) -> dict[str, Any]:
        """Return the summary's fields as of now, with start and duration."""
        values = self.totals.summary(self.session_id)
        values["duration_ms"] = self._elapsed_ns() // 1000 / 1000
        values["started_at"] = _clock.timestamp(self._started_wall)
        values["partial_view"] = self.partial
        values["conversation_id"] = self.conversation or None
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
    """Sessions by the name that the application knows them by.

    Args:
        max_open: Open sessions at once.
        retained: Ended sessions remembered.
        idle_s: Seconds without a call after which a session is due to be ended.
        id_cap: Distinct chunk ids each remembers.
        open_ids: Distinct chunk ids that all open sessions remember together.
    """

    __slots__ = (
        "_ended",
        "_ended_ids",
        "_holding",
        "_id_cap",
        "_idle_ns",
        "_max_open",
        "_open",
        "_open_ids",
        "_retained",
        "_room",
    )

    def __init__(self, *, max_open: int, retained: int, idle_s: float, id_cap: int, open_ids: int) -> None:
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._ended: OrderedDict[str, Session] = OrderedDict()
        self._holding: OrderedDict[str, Session] = OrderedDict()
        self._ended_ids = self._open_ids = 0
        self._room = Room(0)
        self.limit(max_open=max_open, retained=retained, idle_s=idle_s, id_cap=id_cap, open_ids=open_ids)

    def limit(self, *, max_open: int, retained: int, idle_s: float, id_cap: int, open_ids: int) -> None:
        """Change the limits; they hold from the next call on."""
        self._max_open = max_open
        self._retained = retained
        self._idle_ns = int(idle_s * 1e9)
        self._id_cap = id_cap
        self._room.left += open_ids - self._open_ids
        self._open_ids = open_ids

    def __len__(self) -> int:
        return len(self._open)

    def names(self) -> set[str]:
        """Return the names of the open sessions."""
        return set(self._open)

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

    def open(self, name: str, binding: Binding, *, joining: bool = False) -> Session:
        """Open a session: of a name that has ended, a new run, or the one there was where that began elsewhere.

        Args:
            name: The application's id for it.
            binding: Who it is for.
            joining: It is another process's, which goes on here.
        """
        ended = self._ended.pop(name, None)
        if ended is not None:
            self._ended_ids -= ended.totals.ids
        if ended is not None and (joining or ended.partial):
            session = ended
            self._room.left -= session.totals.ids
        else:
            session = Session(name, binding, Totals(self._id_cap, self._room), ended)
        session.final = session.held = None
        session.touched = _clock.monotonic_ns()
        self._open[name] = session
        return session

    def id_of(self, name: str) -> str:
        """Return the id that events of the latest run of a name carry; the name itself where there is none."""
        session = self._open.get(name) or self._ended.get(name)
        return name if session is None else session.session_id

    def end(self, session_id: str) -> Session | None:
        """Close an open session and retain it; None where there is none of that id."""
        session = self._open.pop(session_id, None)
        if session is None:
            return None
        session.shown = None
        self._ended[session_id] = session
        self._ended_ids += session.totals.ids
        self._room.left += session.totals.ids
        self._forget()
        return session

    def _forget(self) -> None:
        """Forget the sessions that ended first, beyond what is retained; a few at once, for the sake of the lock."""
        for _ in range(_FORGOTTEN_AT_ONCE):
            if len(self._ended) <= self._retained and (self._ended_ids <= _MAX_ENDED_IDS or len(self._ended) <= 1):
                return
            _, oldest = self._ended.popitem(last=False)
            self._ended_ids -= oldest.totals.ids

    def abandon(self) -> int:
        """Take all open sessions for ended, at once, since there is no time to end each; return how many."""
        abandoned = len(self._open)
        if abandoned:
            # Those that have a summary are put behind them, to be forgotten last.
            self._open.update(self._ended)
            self._ended, self._open = self._open, OrderedDict()
            self._room.left = self._open_ids
            self._holding.clear()
        return abandoned

    def ended(self, session_id: str) -> RAGSessionPayload | None:
        """Return the retained summary of an ended session."""
        session = self._ended.get(session_id)
        if session is None:
            return None
        if session.final is None:
            session.finish("process_exit")
        return session.final

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
            return oldest.name, "idle_timeout"
        crowded = len(self._open) > self._max_open or self._room.left < self._open_ids // _SPARE
        return (oldest.name, "evicted") if crowded and len(self._open) > 1 else None

    # -- what sampling holds back ---------------------------------------------------------------------------------

    def hold(self, session: Session, draft: Draft) -> None:
        """Keep a stage back until it is known whether its session is worth sending."""
        if not session.held:
            session.held = []
            self._holding[session.session_id] = session
        session.held.append(draft)

    def let_go(self, session: Session) -> list[Draft]:
        """Return the stages of a session that were held back; it holds none of them any more."""
        self._holding.pop(session.session_id, None)
        held, session.held = session.held or [], None
        return held

    def idlest_but(self, session: Session) -> Session | None:
        """Return the session whose stages have been held back the longest since its last, other than this one."""
        if self._holding.pop(session.session_id, None) is not None:
            self._holding[session.session_id] = session
        return next((idlest for idlest in first(self._holding.values, 1) if idlest is not session), None)

    def held(self) -> list[list[Draft]]:
        """Return the lists of stages held back."""
        return [session.held for session in self._holding.values() if session.held]

    def any_open(self) -> str | None:
        """Return the id of the least recently used open session."""
        while True:
            try:
                return next(iter(self._open), None)
            except RuntimeError:
                # A signal handler traced in between.
                continue
