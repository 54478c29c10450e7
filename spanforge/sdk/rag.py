"""`sf_rag`: what an application calls to trace a RAG run."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any, Final, Unpack

from spanforge._guard import out_of_stack
from spanforge.config import SFClientConfig
from spanforge.delivery.ledger import DeliveryReceipt, SinkLedger
from spanforge.exceptions import UnknownSessionError
from spanforge.metrics.meter import PointLedger
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import _coerce as coerce
from spanforge.sdk._chunks import ChunkCollector
from spanforge.sdk._context import current_session, current_stage
from spanforge.sdk._keywords import GenerationDetails, QueryDetails, RerankDetails, RetrievalDetails, SettingsDetails
from spanforge.sdk._never_raises import never_raises
from spanforge.sdk._runtime import Runtime
from spanforge.sdk._stage_inputs import nothing, own_session_id, session_of
from spanforge.sdk._stages import StageCalls
from spanforge.sdk.scopes import (
    IDLE,
    AttachScope,
    Bind,
    GenerationScope,
    RerankScope,
    RetrievalScope,
    SessionScope,
    idle,
)

__all__ = ["RAGStatusInfo", "SFRAGClient"]


@dataclass(frozen=True)
class RAGStatusInfo:
    """How the SDK is doing in this process.

    Attributes:
        status: `ok`, or `degraded` where a sink is down, has lost events or metrics that nobody asked to drop, or its
            worker failed.
        active_sessions: Sessions open now.
        total_queries: `trace_query` calls.
        total_spans: `trace_generation` calls.
        sinks: The ledger of each sink by name: accepted = delivered + failed + dropped + pending. Sinks that
            `configure()` has replaced stand behind them, as `NAME (replaced)`, if they lost events or hold some.
        orphans: Stages whose session is not open in this process; they were emitted all the same.
        replaced: Inputs replaced or left out, by reason.
        metrics: The ledger of metric points of each sink that sends metrics, by name: likewise.
    """

    status: str
    active_sessions: int
    total_queries: int
    total_spans: int
    sinks: Mapping[str, SinkLedger] = field(default_factory=dict[str, SinkLedger])
    orphans: int = 0
    replaced: Mapping[str, int] = field(default_factory=dict[str, int])
    metrics: Mapping[str, PointLedger] = field(default_factory=dict[str, PointLedger])


_LONGEST_WAIT_S: Final = 1e6
"""Eleven days; a lock cannot be told to wait for ever longer."""

_DEFAULT_WAIT_S: Final = 5.0

_UNKNOWN: Final = DeliveryReceipt(pending=1)
_NO_SUMMARY: Final = RAGSessionPayload(session_id="unknown")

_QUERY_DETAILS: Final = frozenset(signature(StageCalls.trace_query).parameters) - {"self", "query"}


_NO_STATUS: Final = RAGStatusInfo("degraded", 0, 0, 0)


def _no_status(*_args: Any, **_kwargs: Any) -> RAGStatusInfo:
    return _NO_STATUS


def _joined(client: SFRAGClient, /, session_id: Any = None, **_kwargs: Any) -> str:
    return own_session_id(client, session_id=session_id)


def _unknown(*_args: Any, **_kwargs: Any) -> DeliveryReceipt:
    """What a wait that failed itself returns: it does not know what was delivered, so it does not say that all was."""
    return _UNKNOWN


class _UnknownLater:
    """The same, to be awaited."""

    def __await__(self) -> Generator[Any, Any, DeliveryReceipt]:
        return _UNKNOWN
        yield  # which makes it a generator


_UNKNOWN_LATER: Final = _UnknownLater()


def _unknown_later(*_args: Any, **_kwargs: Any) -> _UnknownLater:
    return _UNKNOWN_LATER


def _empty(_client: SFRAGClient, /, session_id: Any = None, **_kwargs: Any) -> RAGSessionPayload:
    """What `end_session` returns where it failed itself."""
    return RAGSessionPayload(session_id=coerce.identifier(session_id) or _NO_SUMMARY.session_id)


def _default_wait(*_args: Any, **_kwargs: Any) -> float:
    return _DEFAULT_WAIT_S


def _so_far(_client: SFRAGClient, _hits: object, so_far: object) -> object:
    return so_far


def _no_digest(*_args: Any) -> str:
    return ""


class SFRAGClient(StageCalls):
    """Traces Retrieval-Augmented Generation.

    No method raises into the application, except `end_session` for an id that was never seen. What cannot be used
    is replaced or left out, counted in `get_status().replaced`, and logged once for each kind. Text is hashed in the
    call that receives it and goes no further.

    Args:
        config: None, as for `sf_rag`, shares the process's configuration.
    """

    def __init__(self, config: SFClientConfig | None = None) -> None:
        super().__init__(config, "rag")

    # -- sessions -----------------------------------------------------------------------------------------------

    @never_raises(_empty, _NO_SUMMARY)
    def end_session(self, session_id: str | None = None) -> RAGSessionPayload:
        """End a session and emit its summary. A session that has ended gives its summary again and emits nothing.

        Where the call fails itself, at the recursion limit for example, the summary is empty; call it again.

        Args:
            session_id: From `trace_query`; may be left out inside a scope.

        Raises:
            UnknownSessionError: (a KeyError) This process has never seen the id, or has forgotten it.
        """
        summary = self._end(session_id)
        if summary is None:
            raise UnknownSessionError
        return summary

    def _end(self, session_id: str | None) -> RAGSessionPayload | None:
        runtime = self.cell.get()
        own_id = session_of(session_id, runtime)
        if runtime.settings.disabled:
            return RAGSessionPayload(session_id=own_id or "disabled")
        return runtime.end(own_id) if own_id else None

    @never_raises(nothing)
    def _end_block(self, session_id: str, error_type: str) -> RAGSessionPayload | None:
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return RAGSessionPayload(session_id=session_id)
        so_far = runtime.snapshot(session_id) if runtime.blocks.leave(session_id, error_type) else None
        return so_far or runtime.end(session_id, error_type)

    @never_raises(nothing)
    def get_session(self, session_id: str | None = None) -> RAGSessionPayload | None:
        """Return the summary of an open session as of now; None where it is not open in this process."""
        runtime = self.cell.get()
        own_id = session_of(session_id, runtime)
        return runtime.snapshot(own_id) if own_id else None

    @never_raises(_joined, last="")
    def join_session(self, session_id: str) -> str:
        """Open the local part of a session that began in another process; its summary is marked `partial_view`.

        Returns:
            The session id.
        """
        runtime = self.cell.get()
        own_id = coerce.session_id(session_id, runtime.note)
        if runtime.settings.disabled:
            return own_id or runtime.new_session_id()
        return runtime.join(own_id)

    # -- scopes -------------------------------------------------------------------------------------------------

    @never_raises(idle, last=IDLE)
    def session(self, query: str, **details: Unpack[QueryDetails]) -> SessionScope:
        """Open a session for a `with` or `async with` block, and end it when the block is left.

        Where a framework's or client's answer that began in the block is yet to be read, it ends once that has been.

        Args:
            query: As for `trace_query`; hashed now.
            details: Keywords of `trace_query`.
        """
        return SessionScope(self, partial(self._begin, self._digest(query), **details), self._end_block)

    @never_raises(_no_digest, last="")
    def _digest(self, query: object) -> str:
        runtime = self.cell.get()
        return (
            "" if runtime.settings.disabled else runtime.cleaner.hasher.digest(coerce.query_text(query, runtime.note))
        )

    @never_raises(own_session_id, last="")
    def _begin(self, query_hash: str, /, **details: Unpack[QueryDetails]) -> str:
        runtime = self.cell.get()
        known = {name: value for name, value in details.items() if name in _QUERY_DETAILS}
        if len(known) < len(details):
            runtime.note("session_unknown_argument")
        own_id = self._query(runtime, query_hash, **known)
        if "session_id" in known:
            runtime.blocks.enter_again(own_id)
        return own_id

    @never_raises(_so_far)
    def _read(self, hits: object, so_far: object) -> object:
        runtime = self.cell.get()
        if runtime.settings.disabled:
            return None
        collector = so_far
        if not isinstance(collector, ChunkCollector):
            collector = ChunkCollector(runtime.cleaner, runtime.note, runtime.settings.max_chunk_ids)
        collector.add(hits)
        return collector

    @never_raises(idle, last=IDLE)
    def retrieval(self, session_id: str | None = None, **details: Unpack[RetrievalDetails]) -> RetrievalScope:
        """Time a block as a retrieval; `record(hits)` says what it found. Keywords as for `trace_retrieval`."""
        return RetrievalScope(self.cell, self.trace_retrieval, session_id, details, self._read)

    @never_raises(idle, last=IDLE)
    def rerank(self, model: str = "", session_id: str | None = None, **details: Unpack[RerankDetails]) -> RerankScope:
        """Time a block as a rerank; `record(chunks)` gives the new order. Keywords as for `trace_rerank`."""
        return RerankScope(self.cell, self.trace_rerank, session_id, {"model": model, **details}, self._read)

    @never_raises(idle, last=IDLE)
    def generation(
        self, model: str = "", session_id: str | None = None, **details: Unpack[GenerationDetails]
    ) -> GenerationScope:
        """Time a block as a generation; `record(…)` adds what is known. Keywords as for `trace_generation`."""
        return GenerationScope(self.cell, self.trace_generation, session_id, {"model": model, **details})

    @never_raises(idle, last=IDLE)
    def attach(self, session_id: str) -> AttachScope:
        """Make an open session the current one for a block, in another thread or task than it was opened in.

        Args:
            session_id: From `trace_query`. The session is not ended when the block is left.
        """
        return AttachScope(coerce.identifier(session_id))

    @never_raises(nothing)
    def current_session_id(self) -> str | None:
        """Return the id of the session this context is in, None outside of any."""
        return current_session.get()

    @never_raises(nothing)
    def current_scope(self) -> RetrievalScope | RerankScope | GenerationScope | None:
        """Return the scope of the stage that this context is in: what traces by itself is part of it.

        None outside of any, and within a session that was entered inside it.
        """
        reference = current_stage.get()
        if reference is None:
            return None
        scope = reference()
        if scope is None:
            current_stage.give_up()
            self.cell.get().note("scope_not_left")
            return None
        return scope if scope.is_open and scope.around == current_session.get() else None

    @never_raises(idle, last=IDLE)
    def bind(self, *, org_id: str = "", team_id: str = "", actor_id: str = "", **tags: str) -> Bind:
        """Say who the events of this context are made for, from now on or for a `with` block.

        Args:
            org_id: Organisation.
            team_id: Team.
            actor_id: User or service.
            tags: Further tags, at most 50; kept as given.
        """
        return Bind(self.cell.get(), org_id, team_id, actor_id, tags)

    # -- delivery -----------------------------------------------------------------------------------------------

    def configure(self, **settings: Unpack[SettingsDetails]) -> None:
        """Configure this client (for `sf_rag`, the process); settings as in `spanforge.config.Settings`.

        Every call configures anew: what it does not name, the sinks too, is what the environment says, or the default.
        The sinks in use until now deliver what they have, for at most two seconds; open sessions go on.

        Raises:
            ConfigError: A setting cannot be used; the message names it, and nothing has changed.
        """
        self.cell.configure({**settings})

    @never_raises(_unknown, _UNKNOWN)
    def flush(self, timeout: float = 5.0) -> DeliveryReceipt:
        """Wait until every event emitted so far is settled by every sink, or kept by one that accounts for it later.

        Kafka and spools keep events: the ledger has those as pending until their receiver has them.

        Args:
            timeout: Seconds to wait at most, by the monotonic clock.

        Returns:
            How many deliveries, summed over the sinks, were not made: 0 where all were. They wait or are being
            written, or have failed or been dropped since the last receipt; its attributes tell these apart.
        """
        runtime = self.cell.current()
        return DeliveryReceipt() if runtime is None else runtime.dispatchers.flush(_seconds(timeout, runtime))

    @never_raises(_unknown_later, _UNKNOWN_LATER)
    async def aflush(self, timeout: float = 5.0) -> DeliveryReceipt:  # noqa: ASYNC109  as in `flush`
        """Do as `flush` does without blocking the event loop, which is asyncio's."""
        try:
            runtime = self.cell.current()
            return DeliveryReceipt() if runtime is None else await runtime.dispatchers.aflush(self._wait_of(timeout))
        except RuntimeError:
            # The stack has no room to wait, or the event loop is none of asyncio's.
            return _UNKNOWN

    @never_raises(_default_wait, _DEFAULT_WAIT_S)
    def _wait_of(self, timeout: object) -> float:
        return _seconds(timeout, self.cell.get())

    @never_raises(_unknown, _UNKNOWN)
    def shutdown(self, timeout: float = 5.0) -> DeliveryReceipt:
        """End open sessions, deliver what can be in `timeout` seconds, and close the sinks.

        Events that come later are counted as dropped.

        Args:
            timeout: Seconds for all of it, by the monotonic clock.

        Returns:
            How many deliveries were not made, as for `flush`; those pending are in the hands of a sink that hangs.
        """
        runtime = self.cell.current()
        if runtime is None:
            return DeliveryReceipt()
        return runtime.close(_seconds(timeout, runtime))

    @never_raises(_no_status, last=_NO_STATUS)
    def get_status(self) -> RAGStatusInfo:
        """Return what arrived, what failed, what was dropped and why, and which inputs were replaced."""
        runtime = self.cell.get()
        ledgers, points = runtime.dispatchers.ledgers(), runtime.dispatchers.metric_ledgers()
        worse = any(ledger.degraded for ledger in ledgers.values()) or any(one.lost for one in points.values())
        return RAGStatusInfo(
            status="degraded" if worse else "ok",
            active_sessions=runtime.active_sessions(),
            total_queries=runtime.total_queries,
            total_spans=runtime.total_spans,
            sinks=ledgers,
            orphans=runtime.orphans,
            replaced={**runtime.replaced, **({"out_of_stack": out_of_stack[0]} if out_of_stack[0] else {})},
            metrics=points,
        )


def _seconds(timeout: Any, runtime: Runtime) -> float:
    seconds = coerce.number(timeout, "timeout", runtime.note)
    if timeout is None:
        runtime.note("timeout")
    return _DEFAULT_WAIT_S if seconds is None else min(max(0.0, seconds), _LONGEST_WAIT_S)
