"""What is inside a client: settings, sessions, ids, counters and delivery, under one lock."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from weakref import WeakMethod

from spanforge import _clock, _ids
from spanforge._warnings import warn
from spanforge.config import Settings
from spanforge.delivery import process
from spanforge.delivery.dispatch import Dispatcher
from spanforge.delivery.ledger import DeliveryReceipt
from spanforge.delivery.queue import writing
from spanforge.exceptions import StrictModeError
from spanforge.namespaces.event import Binding, Draft, Parent
from spanforge.namespaces.retrieval import EndReason, RAGSessionPayload
from spanforge.namespaces.stages import GENERATED, QUERY, SESSION
from spanforge.sdk._blocks import Blocks
from spanforge.sdk._context import bound
from spanforge.sdk._dispatchers import Dispatchers, left
from spanforge.sdk._from_settings import cleaner_of, limits_of, policy_of
from spanforge.sdk._held_back import HeldBack
from spanforge.sdk._shown import LISTENERS, LISTS, Shown
from spanforge.sdk._surroundings import active_span, need_stack
from spanforge.sessions.sampling import always_kept, is_sampled
from spanforge.sessions.table import Session, SessionTable
from spanforge.sinks.base import Sink

__all__ = ["Runtime", "weakly"]

_SUMMARY_BYTES: Final = 2_600
_TAG_BYTES: Final = 160
_MAX_REASONS: Final = 200
_ID_BYTES: Final = 80
_SWEEPS_PER_CALL: Final = 2
_SLICE: Final = 64
"""Sessions ended in one go, under the lock, while the application goes on."""
_LAST_SLICE: Final = 512
"""Likewise at the end, when few callers are left to wait: each pause costs a turn of the interpreter's own lock."""
_BREATH_S: Final = 1e-4
_ROOM_S: Final = 0.02
_STALLED_S: Final = 1.5
"""How long the end of the process waits for sinks of which none takes anything."""
_SHARE_OF_ENDING: Final = 0.75
"""Of the time there is at the end; the rest is for what waits then."""
_IDLE_PATIENCE_S: Final = 1.0
_LONGEST_PATIENCE_S: Final = 5.0
_BEYOND_THE_CALLER: Final = frozenset({"score_missing", "score_undecided"})
"""What a store or a framework leaves out, and no application can make up."""

_NOBODY: Final = Binding()


class Runtime:
    """What a process has of one client: its sessions, ids and counts, and the configuration that is at work now.

    `configure()` swaps the configuration in place, under the one lock: a call that is under way ends with the new one.

    Args:
        settings: The configuration.
        sinks: Its sinks, opened from `settings.sinks`.
        on_start: Called at the first event of each configuration.
    """

    def __init__(self, settings: Settings, sinks: list[Sink], on_start: Callable[[], None] = lambda: None) -> None:
        self.generation = process.generation()
        self.replaced: Counter[str] = Counter()
        self.total_queries = self.total_spans = self.orphans = 0
        self._on_start = on_start
        self._lock = threading.RLock()
        self._ids = _ids.IdSource()
        self._table = SessionTable(**limits_of(settings))
        self.blocks = Blocks(self._lock, self._table)
        dispatcher = self._dispatcher_of(settings, sinks)
        self.dispatchers = Dispatchers(self._lock, dispatcher)
        self._use(settings, dispatcher)

    def _dispatcher_of(self, settings: Settings, sinks: list[Sink]) -> Dispatcher:
        return Dispatcher(
            sinks,
            policy_of(settings),
            max_events=settings.queue_events,
            max_bytes=settings.queue_bytes,
            lock=self._lock,
            in_line=settings.delivery == "sync",
            on_idle=weakly(self.end_overdue),
            on_start=self._on_start,
        )

    def _use(self, settings: Settings, dispatcher: Dispatcher) -> None:
        self.settings = settings
        self.cleaner = cleaner_of(settings)
        self.dispatcher = dispatcher
        self._log = dispatcher.log
        self._held_back = HeldBack(self._table, dispatcher.log, settings.keep_grounding_below)
        self._meters = [meter for sink in dispatcher.sinks if (meter := getattr(sink, "meter", None)) is not None]
        self._default_binding = Binding(settings.org_id, settings.team_id, "", settings.default_tags)

    def reconfigure(self, settings: Settings, sinks: list[Sink]) -> Dispatcher:
        """Put another configuration to work; return the dispatcher of the one before, which is to be closed."""
        new = self._dispatcher_of(settings, sinks)
        with self._lock:
            old = self.dispatcher
            new.follow(old)
            self._table.limit(**limits_of(settings))
            for held in self._table.held():
                # They change ledgers: the old one counts them dropped, the new one accepted.
                old.log.forget(held)
                old.log.refused["reconfigured"] += len(held)
                held[:] = [draft for draft in held if new.log.hold(draft)]
            self._use(settings, new)
            self.dispatchers.use(new)
        return old

    # -- the end ------------------------------------------------------------------------------------------------

    def close(self, timeout: float) -> DeliveryReceipt:
        """End the open sessions, deliver, close the sinks."""
        deadline = _clock.monotonic() + timeout
        self.end_all("process_exit", timeout * _SHARE_OF_ENDING)
        return self.dispatchers.close(deadline)

    def leave(self, *, ends: bool) -> None:
        """Deliver within the time the settings allow, for the process was told to end.

        Args:
            ends: It will, and so do the open sessions; otherwise it may go on.
        """
        timeout = self.settings.exit_timeout_s
        deadline = _clock.monotonic() + timeout
        if not ends:
            self.dispatchers.flush(timeout, _STALLED_S)
            return
        self.end_all("process_exit", timeout * _SHARE_OF_ENDING)
        self.dispatcher.exit(left(deadline), _STALLED_S)

    # -- inputs -------------------------------------------------------------------------------------------------

    def note(self, reason: str) -> None:
        """Count an input that was replaced or left out, and say so once for each kind.

        Raises:
            StrictModeError: Strict mode is on, and the caller could have done better.
        """
        if self.settings.strict and reason not in _BEYOND_THE_CALLER:
            raise StrictModeError(f"{reason}: this input would be replaced; see the reference of trace calls")
        self.count(reason)

    def count(self, reason: str) -> None:
        """Count something that went wrong without an event to show for it, and say so once for each kind."""
        with self._lock:
            if reason not in self.replaced and len(self.replaced) >= _MAX_REASONS:
                reason = "other"
            self.replaced[reason] += 1
            first = self.replaced[reason] == 1
        if first:
            warn("spanforge input replaced or left out: %s (counted in get_status().replaced)", reason)

    def new_session_id(self) -> str:
        """Mint a session id."""
        with self._lock:
            return self._new_id()

    def _new_id(self) -> str:
        return _ids.encode(self._ids.mint(_clock.wall_ns()))

    def binding(self) -> Binding:
        """Return who an event made now is made for."""
        own, base = bound.get(), self._default_binding
        if own is None:
            return base
        if base == _NOBODY:
            return own
        return Binding(own.org_id or base.org_id, own.team_id or base.team_id, own.actor_id, {**base.tags, **own.tags})

    # -- sessions -----------------------------------------------------------------------------------------------

    def query(
        self, session_id: str | None, payload: dict[str, Any], size: int, conversation: str = "", *, once: bool = False
    ) -> str:
        """Emit a query event, unless it is wanted once and has been; open its session if it is not open.

        Returns:
            The id by which the caller knows the session.
        """
        with self._lock:
            need_stack()
            if session_id is None:
                session_id = self._new_id()
            session = self._table.find(session_id) or self._open(session_id)
            if once and payload["query_hash"] in session.asked:
                return session_id
            session.ask(payload["query_hash"])
            session.conversation = conversation or session.conversation
            payload["session_id"] = session.session_id
            payload["conversation_id"] = session.conversation or None
            self.total_queries += 1
            self._emit_stage(QUERY, session, payload, size)
            self._sweep()
        self.dispatcher.emitted()
        return session_id

    def join(self, session_id: str | None, parent: Parent | None = None) -> str:
        """Open the local part of a session that began elsewhere, in the trace it has there if that is known."""
        with self._lock:
            need_stack()
            session_id = session_id or self._new_id()
            if self._table.find(session_id) is None:
                session = self._open(session_id, joining=True)
                session.partial = True
                session.parent = parent or session.parent
                self._sweep()
        self.dispatcher.emitted()
        return session_id

    def trace_of(self, session_id: str) -> Parent:
        """Return the trace that a session's events are in, and whether it is sampled."""
        with self._lock:
            session = self._table.peek(session_id)
            return (
                session.parent
                if session and session.parent
                else Parent(_ids.trace_id_of(self._table.id_of(session_id)), "")
            )

    def run_id(self, session_id: str) -> str:
        """Return the id that the events of a session's latest run carry."""
        with self._lock:
            return self._table.id_of(session_id)

    def stage(self, event_type: str, session_id: str | None, payload: dict[str, Any], size: int) -> None:
        """Emit a stage event; one whose session is not open here is emitted all the same, and counted an orphan."""
        with self._lock:
            need_stack()
            if event_type == GENERATED:
                self.total_spans += 1
            session = self._table.find(session_id) if session_id else None
            session_id = session_id or self._new_id()
            payload["session_id"] = self._table.id_of(session_id)
            if session is not None:
                if payload.get("query_hash") == "":
                    payload["query_hash"] = session.query_hash
                self._emit_stage(event_type, session, payload, size)
                if LISTENERS:
                    session.shown = session.shown or Shown()
                    session.shown.heard(event_type, payload)
            else:
                self._emit_orphan(event_type, session_id, payload, size)
        self.dispatcher.emitted()
        if LISTENERS and event_type in LISTS:
            for listen in LISTENERS:
                listen(session_id, event_type, payload)

    def shown(self, session_id: str) -> list[str]:
        """Return the chunks that a session's lists give a model to read that is called now."""
        with self._lock:
            session = self._table.peek(session_id)
            shown: Shown | None = None if session is None else session.shown
            return [] if shown is None else shown.ids

    def outside(self, event_type: str, session_id: str, payload: dict[str, Any], size: int) -> None:
        """Emit an event that belongs to a session whether or not it is open, such as feedback; never sampled out."""
        with self._lock:
            need_stack()
            session = self._table.peek(session_id)
            parent = session.parent if session else None
            payload["session_id"] = self._table.id_of(session_id)
            self._log.accept(self._draft(event_type, payload, parent, size))
        self.dispatcher.emitted()

    def end(self, session_id: str, error_type: str = "", reason: EndReason = "ended") -> RAGSessionPayload | None:
        """End a session and emit its summary; of one that has ended return the retained summary; None if never seen."""
        with self._lock:
            need_stack()
            if error_type and (session := self._table.peek(session_id)) is not None:
                session.totals.add(SESSION, {"error_type": error_type}, 0)
                self._held_back.release(session)
            summary = self._end(session_id, reason) or self._table.ended(session_id)
        self.dispatcher.emitted()
        return summary

    def snapshot(self, session_id: str) -> RAGSessionPayload | None:
        """Return the summary of an open session as of now; None where it is not open."""
        with self._lock:
            session = self._table.peek(session_id)
            return None if session is None else RAGSessionPayload.trusted(session.snapshot())

    def active_sessions(self) -> int:
        """Return how many sessions are open."""
        return len(self._table)

    def open_sessions(self) -> set[str]:
        """Return the names of the open sessions."""
        with self._lock:
            return self._table.names()

    def end_overdue(self) -> None:
        """End the sessions whose idle time is over, as far as there is room for their summaries."""
        while self._end_slice(self._end_overdue_one, _SLICE, _IDLE_PATIENCE_S):
            self._breathe(_BREATH_S)

    def end_all(self, reason: EndReason, timeout: float = 5.0) -> None:
        """End the open sessions at the pace of the sinks, for at most `timeout` seconds.

        Sessions that there is no time for end without a summary, which is counted as dropped. The caller sees to the
        delivery.
        """
        deadline, patience = _clock.monotonic() + timeout, min(timeout / 4, _LONGEST_PATIENCE_S)
        with self.dispatcher.hurried():
            while _clock.monotonic() < deadline and self._table:
                more = self._end_slice(partial(self._end_any, reason), _LAST_SLICE, patience)
                self._breathe(_BREATH_S if more else _ROOM_S)
        with self._lock:
            if abandoned := self._table.abandon():
                self._log.abandon(abandoned)

    def _end_slice(self, end_one: Callable[[], bool], most: int, patience: float) -> bool:
        """End some sessions; False where `end_one` finds no more, or the queue has no room."""
        with self._lock:
            # A signal handler or the garbage collector may be at work inside a sink's write; what ends here is not the
            # sink's own tracing.
            inside = writing.get()
            writing.set(False)
            try:
                more = all(not self.dispatcher.crowded(patience) and end_one() for _ in range(most))
            finally:
                writing.set(inside)
        self.dispatcher.emitted()
        return more

    def _breathe(self, seconds: float) -> None:
        """Let callers and workers have the lock; wait no longer than until a worker has settled something."""
        with self._lock:
            self._log.changed.wait(seconds)

    def _sweep(self) -> None:
        for _ in range(_SWEEPS_PER_CALL):
            due = self._table.overdue()
            if due is None:
                return
            self._end(*due)

    def _end_any(self, reason: EndReason) -> bool:
        session_id = self._table.any_open()
        return session_id is not None and self._end(session_id, reason) is not None

    def _end_overdue_one(self) -> bool:
        due = self._table.overdue()
        return due is not None and self._end(*due) is not None

    def _open(self, name: str, *, joining: bool = False) -> Session:
        session = self._table.open(name, self.binding(), joining=joining)
        session.parent = active_span()
        if not session.kept and not is_sampled(session.session_id, self.settings.sample_rate):
            session.held = []
        return session

    def _end(self, session_id: str, reason: EndReason) -> RAGSessionPayload | None:
        session = self._table.peek(session_id)
        if session is None:
            return None
        # All that may fail comes before the session is closed: what fails can be tried again.
        payload = session.finish(reason)
        wall_ns = _clock.wall_ns()
        size = _SUMMARY_BYTES + _ID_BYTES * len(payload["unique_chunk_ids"])
        # For whom it began: an idle session is ended by a worker, which is bound to nobody.
        draft = Draft(
            self._ids.mint(wall_ns),
            wall_ns,
            SESSION,
            session.session_id,
            payload,
            session.binding,
            session.parent,
            size,
            True,
        )
        if self._table.end(session_id) is None:
            # A signal handler ended it in between.
            return session.final
        if session.held:
            self._held_back.give_up(session, "sampled")
        if self._meters:
            self._measure(SESSION, payload, size)
        self._log.accept(draft)
        return session.final

    def _emit_stage(self, event_type: str, session: Session, payload: dict[str, Any], size: int) -> None:
        draft = self._draft(event_type, payload, session.parent, size)
        session.totals.add(event_type, payload, draft.number)
        if session.held is None:
            self._log.accept(draft)
        else:
            self._held_back.take(session, draft)

    def _emit_orphan(self, event_type: str, session_id: str, payload: dict[str, Any], size: int) -> None:
        self.orphans += 1
        settings = self.settings
        if (
            is_sampled(payload["session_id"], settings.sample_rate)
            or always_kept(event_type, payload, settings.keep_grounding_below)
            or self._table.was_kept(session_id)
        ):
            self._log.accept(self._draft(event_type, payload, None, size))
        else:
            self._log.refuse("sampled")

    def _draft(self, event_type: str, payload: dict[str, Any], parent: Parent | None, size: int) -> Draft:
        """Make an event and give it its place in the order: the next step, under the same lock, is to accept it."""
        wall_ns = _clock.wall_ns()
        number = self._ids.mint(wall_ns)
        binding = self.binding()
        if binding.tags:
            size += _TAG_BYTES * len(binding.tags)
        if self._meters:
            self._measure(event_type, payload, size)
        return Draft(number, wall_ns, event_type, payload["session_id"], payload, binding, parent, size)

    def _measure(self, event_type: str, payload: dict[str, Any], size: int) -> None:
        """Let figures be taken of everything that is traced, whatever sampling and full queues leave of it."""
        for meter in self._meters:
            meter.record(event_type, payload, size)


def weakly(method: Callable[[], None]) -> Callable[[], None]:
    """Call a method without keeping its object alive: a worker's thread must not keep a client that is gone."""
    reference = WeakMethod(method)

    def call() -> None:
        if (found := reference()) is not None:
            found()

    return call
