"""What is inside a client: settings, sessions, ids, counters and delivery, under one lock."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from weakref import WeakMethod

from spanforge import _clock, _ids
from spanforge._hashing import Hasher, utf8
from spanforge._text import Cleaner
from spanforge.config import Settings
from spanforge.delivery.dispatch import Dispatcher
from spanforge.delivery.guard import guarded, warn
from spanforge.delivery.queue import writing
from spanforge.delivery.worker import DeliveryPolicy
from spanforge.exceptions import StrictModeError
from spanforge.namespaces.event import Binding, Draft
from spanforge.namespaces.retrieval import EndReason, RAGSessionPayload
from spanforge.sdk._context import bound
from spanforge.sessions.sampling import always_kept, is_sampled
from spanforge.sessions.table import Session, SessionTable
from spanforge.sinks.base import Sink

__all__ = ["Runtime", "weakly"]

_SUMMARY_BYTES: Final = 2_600
_TAG_BYTES: Final = 160
_MAX_REASONS: Final = 200
_ID_BYTES: Final = 80
_SWEEPS_PER_CALL: Final = 2
_BEYOND_THE_CALLER: Final = frozenset({"score_missing"})
"""What a store or a framework leaves out, and no application can make up."""

_NOBODY: Final = Binding()


class Runtime:
    """One configuration at work.

    Args:
        settings: The configuration.
        sinks: Its sinks, opened from `settings.sinks`.
        on_start: Called once, at the first event.
    """

    def __init__(self, settings: Settings, sinks: list[Sink], on_start: Callable[[], None] = lambda: None) -> None:
        self.settings = settings
        self.pid = os.getpid()
        self.cleaner = Cleaner(
            Hasher(utf8(settings.hash_key.get_secret_value()) if settings.hash_key else None),
            settings.metadata_allow,
            capture=settings.capture_messages,
        )
        self.replaced: Counter[str] = Counter()
        self.total_queries = self.total_spans = self.orphans = 0
        self._default_binding = Binding(settings.org_id, settings.team_id, "", settings.default_tags)
        self._ids = _ids.IdSource()
        self._table = SessionTable(
            max_open=settings.max_sessions,
            retained=settings.retained_sessions,
            idle_s=settings.session_idle_s,
            id_cap=settings.max_chunk_ids,
        )
        self.dispatcher = Dispatcher(
            sinks,
            DeliveryPolicy(
                source=settings.source,
                batch_events=settings.batch_events,
                batch_delay_s=settings.batch_delay_s,
                max_attempts=settings.max_attempts,
                backoff_s=settings.backoff_s,
                max_backoff_s=settings.max_backoff_s,
            ),
            max_events=settings.queue_events,
            max_bytes=settings.queue_bytes,
            in_line=settings.delivery == "sync",
            on_idle=weakly(self.end_overdue),
            on_start=on_start,
        )
        self._log = self.dispatcher.log
        self._lock = self._log.lock
        self._successor: Runtime | None = None

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

    def query(self, session_id: str | None, payload: dict[str, Any], size: int) -> str:
        """Emit a query event; open its session if it is not open. Returns the session's id."""
        with self._lock:
            if self._successor is not None:
                return self._successor.query(session_id, payload, size)
            if session_id is None:
                session_id = self._new_id()
            payload["session_id"] = session_id
            session = self._table.find(session_id) or self._open(session_id)
            session.query_hash = payload["query_hash"]
            self.total_queries += 1
            self._emit_stage("llm.rag.query", session, payload, size)
            self._end_overdue(_SWEEPS_PER_CALL)
        self.dispatcher.emitted()
        return session_id

    def join(self, session_id: str | None, parent: tuple[str, str] | None = None) -> str:
        """Open the local part of a session that began elsewhere, in the trace it has there if that is known."""
        with self._lock:
            if self._successor is not None:
                return self._successor.join(session_id, parent)
            session_id = session_id or self._new_id()
            if self._table.find(session_id) is None:
                session = self._open(session_id)
                session.partial = True
                session.parent = parent or session.parent
                self._end_overdue(_SWEEPS_PER_CALL)
        self.dispatcher.emitted()
        return session_id

    def trace_id(self, session_id: str) -> str:
        """Return the trace that a session's events are in."""
        with self._lock:
            if self._successor is not None:
                return self._successor.trace_id(session_id)
            session = self._table.peek(session_id)
            return session.parent[0] if session and session.parent else _ids.trace_id_of(session_id)

    def stage(self, event_type: str, session_id: str | None, payload: dict[str, Any], size: int) -> None:
        """Emit a stage event; one whose session is not open here is emitted all the same, and counted an orphan."""
        with self._lock:
            if self._successor is not None:
                self._successor.stage(event_type, session_id, payload, size)
                return
            if event_type == "llm.rag.generated":
                self.total_spans += 1
            session = self._table.find(session_id) if session_id else None
            payload["session_id"] = session_id = session_id or self._new_id()
            if session is not None:
                if payload.get("query_hash") == "":
                    payload["query_hash"] = session.query_hash
                self._emit_stage(event_type, session, payload, size)
            else:
                self._emit_orphan(event_type, session_id, payload, size)
        self.dispatcher.emitted()

    def outside(self, event_type: str, session_id: str, payload: dict[str, Any], size: int) -> None:
        """Emit an event that belongs to a session whether or not it is open, such as feedback; never sampled out."""
        with self._lock:
            if self._successor is not None:
                self._successor.outside(event_type, session_id, payload, size)
                return
            session = self._table.peek(session_id)
            parent = session.parent if session else None
            self._log.accept(self._draft(event_type, session_id, payload, parent, size))
        self.dispatcher.emitted()

    def end(self, session_id: str, error_type: str = "") -> RAGSessionPayload | None:
        """End a session and emit its summary; of one that has ended return the retained summary; None if never seen."""
        with self._lock:
            if self._successor is not None:
                return self._successor.end(session_id, error_type)
            if error_type and (session := self._table.peek(session_id)) is not None:
                session.totals.add("llm.rag.session", {"error_type": error_type}, 0)
                self._release(session)
            summary = self._end(session_id, "ended") or self._table.ended(session_id)
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

    def end_overdue(self) -> None:
        """End every session whose idle time is over."""
        with self._lock:
            if self._successor is None:
                self._end_overdue(len(self._table))

    def end_all(self, reason: EndReason) -> None:
        """End every open session; the caller sees to the delivery, for which it has a deadline."""
        with self._lock:
            # A signal handler or the garbage collector may be at work inside a sink's write; what ends here is not the
            # sink's own tracing.
            inside = writing.get()
            writing.set(False)
            try:
                while self._successor is None and (session_id := self._table.any_open()) is not None:
                    self._end(session_id, reason)
            finally:
                writing.set(inside)

    def _open(self, session_id: str) -> Session:
        session = self._table.open(session_id, self.binding())
        session.parent = _active_span()
        if not session.kept and not is_sampled(session_id, self.settings.sample_rate):
            session.held = []
        return session

    def _end(self, session_id: str, reason: EndReason) -> RAGSessionPayload | None:
        session = self._table.end(session_id)
        if session is None:
            return None
        payload = session.finish(reason)
        if session.held:
            self._log.forget(session.held)
            self._log.refused["sampled"] += len(session.held)
        session.held = None
        wall_ns = _clock.wall_ns()
        size = _SUMMARY_BYTES + _ID_BYTES * len(payload["unique_chunk_ids"])
        # For whom it began: an idle session is ended by a worker, which is bound to nobody.
        self._log.accept(
            Draft(
                self._ids.mint(wall_ns),
                wall_ns,
                "llm.rag.session",
                session_id,
                payload,
                session.binding,
                session.parent,
                size,
                True,
            )
        )
        return session.final

    def _end_overdue(self, most: int) -> None:
        for _ in range(most):
            due = self._table.overdue()
            if due is None:
                return
            self._end(*due)

    def _emit_stage(self, event_type: str, session: Session, payload: dict[str, Any], size: int) -> None:
        draft = self._draft(event_type, session.session_id, payload, session.parent, size)
        session.totals.add(event_type, payload, draft.number)
        if session.held is None:
            self._log.accept(draft)
        else:
            self._hold(session, draft)

    def _emit_orphan(self, event_type: str, session_id: str, payload: dict[str, Any], size: int) -> None:
        self.orphans += 1
        settings = self.settings
        if (
            is_sampled(session_id, settings.sample_rate)
            or always_kept(event_type, payload, settings.keep_grounding_below)
            or self._table.was_kept(session_id)
        ):
            self._log.accept(self._draft(event_type, session_id, payload, None, size))
        else:
            self._log.refuse("sampled")

    def _draft(
        self, event_type: str, session_id: str, payload: dict[str, Any], parent: tuple[str, str] | None, size: int
    ) -> Draft:
        """Make an event and give it its place in the order: the next step, under the same lock, is to accept it."""
        wall_ns = _clock.wall_ns()
        number = self._ids.mint(wall_ns)
        binding = self.binding()
        if binding.tags:
            size += _TAG_BYTES * len(binding.tags)
        return Draft(number, wall_ns, event_type, session_id, payload, binding, parent, size)

    # -- sampling -----------------------------------------------------------------------------------------------

    def _hold(self, session: Session, draft: Draft) -> None:
        """Keep a stage of an unsampled session back until it is known whether the session is worth sending."""
        if always_kept(draft.event_type, draft.payload, self.settings.keep_grounding_below):
            self._release(session)
            self._log.accept(draft)
        elif session.held is not None and self._log.hold(draft):
            session.held.append(draft)
        else:
            self._log.refuse("sampling_buffer_full")

    def _release(self, session: Session) -> None:
        held, session.held, session.kept = session.held, None, True
        if held:
            self._log.release(held)

    # -- taking over --------------------------------------------------------------------------------------------

    def succeed(self, old: Runtime) -> None:
        """Take over open sessions, ids and counts from a runtime of this process, and let it send its callers here."""
        self.dispatcher.follow(old.dispatcher)
        with old._lock, self._lock:
            self._table, self._ids = old._table, old._ids
            self._table.limit(
                max_open=self.settings.max_sessions,
                retained=self.settings.retained_sessions,
                idle_s=self.settings.session_idle_s,
                id_cap=self.settings.max_chunk_ids,
            )
            self.replaced = old.replaced
            self.total_queries, self.total_spans, self.orphans = old.total_queries, old.total_spans, old.orphans
            for held in self._table.held():
                # They change ledgers: the old one counts them dropped, the new one accepted.
                old._log.forget(held)
                old._log.refused["reconfigured"] += len(held)
                held[:] = [draft for draft in held if self._log.hold(draft)]
            old._successor = self


def weakly(method: Callable[[], None]) -> Callable[[], None]:
    """Call a method without keeping its object alive: a worker's thread must not keep a client that is gone."""
    reference = WeakMethod(method)

    def call() -> None:
        if (found := reference()) is not None:
            found()

    return call


def _no_span(*_: object) -> tuple[str, str] | None:
    return None


@partial(guarded, recover=_no_span)
def _active_span() -> tuple[str, str] | None:
    """Return trace and span id of the OpenTelemetry span the application is in, if it uses OpenTelemetry at all."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span = trace.get_current_span()
    if span is trace.INVALID_SPAN or not (context := span.get_span_context()).is_valid:
        return None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"
