"""Blocks that are a stage: what is recorded in them is one event, made when they are left."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Unpack

from spanforge import _clock
from spanforge.sdk._block import Block, cell_of, is_failure, no, quiet
from spanforge.sdk._cell import RuntimeCell
from spanforge.sdk._chunks import ChunkCollector, joined
from spanforge.sdk._context import Block as Entered
from spanforge.sdk._context import current_session, current_stage
from spanforge.sdk._keywords import GenerationDetails, Hits, RerankDetails, RetrievalDetails
from spanforge.sdk._never_raises import never_raises

__all__ = ["GenerationScope", "RerankScope", "RetrievalScope", "StageScope", "outcome_of"]


def outcome_of(kind: type[BaseException] | None) -> dict[str, Any]:
    """Return how a stage ended that was left with an error of this class, as keywords of its trace call."""
    if kind is None or not is_failure(kind):
        return {}
    return {"status": "timeout" if issubclass(kind, TimeoutError) else "error", "error_message": kind}


def _is_unsaid(value: object) -> bool:
    return value is None or (type(value) is str and not value)


class StageScope(Block):
    """A stage that is emitted when its block is left, with the block's duration and outcome.

    What a framework or a client traces by itself within the block is part of this stage and not another one. A scope
    that was entered and let go of without being left records nothing, which is counted.

    Args:
        cell: Its runtime counts what the block says that means nothing.
        emit: The trace call, given the session's id and keywords.
        session_id: Whose stage; None takes the current session's when the block is entered.
        details: Keywords known already.

    Attributes:
        around: The session that the block was entered in.
        is_open: Whether the block was entered and not left.
        kind: Which stage it is.
        session_id: Its session, None while there is none.
    """

    kind = ""
    is_open = False

    def __init__(
        self, cell: RuntimeCell, emit: Callable[..., None], session_id: str | None, details: Mapping[str, object]
    ) -> None:
        self._cell = cell
        self._trace = emit
        self._given_id = self.session_id = session_id
        self._given = dict(details)
        self._said: dict[str, object] = {}
        self._beside: dict[str, object] = {}
        self._adopted: deque[Callable[[], object]] = deque()
        self._entered: Entered[Any] | None = None
        self.around: str | None = None
        self._calls = count()
        self._started = 0

    @quiet
    def _enter(self) -> None:
        self._started = _clock.monotonic_ns()
        self.around, self.is_open, self._calls = current_session.get(), True, count()
        self._beside = {}
        if self._given_id is None:
            # Now, not when it is left: a stream may be closed in a context that knows no session.
            self.session_id = self.around
        # A context may live as long as the process, and a scope only as long as somebody could leave it. Nothing is
        # recorded as it goes: Python drops the interrupt that comes while it does.
        self._entered = current_stage.enter(weakref.ref(self))

    @quiet
    def _leave(self, kind: type[BaseException] | None) -> None:
        if not self.is_open:
            return
        self.is_open = False
        if self._entered is not None:
            self._entered.leave()
        elapsed_ms = (_clock.monotonic_ns() - self._started) / 1e6
        details = {"session_id": self.session_id, "latency_ms": elapsed_ms, **self._given, **self._told()}
        for name, value in self._beside.items():
            if _is_unsaid(details.get(name)):
                details[name] = value
        self._trace(**(details | outcome_of(kind)))
        self._end_adopted()

    def _told(self) -> dict[str, object]:
        """Return what the block said, and forget it: it is the event's, and a scope that is used again says its own."""
        said, self._said = self._said, {}
        return said

    # -- for what traces by itself ------------------------------------------------------------------------------

    def take_up(self) -> bool:
        """Tell whether a call to a model is this generation: the first is, and what else is called is one of its own.

        A generator's scope is open in its consumer's context too, whose calls are none of this.
        """
        return next(self._calls) == 0

    @never_raises(no, cell=cell_of)
    def fill(self, **details: object) -> None:
        """Say what is known of the stage where its block does not: it stands where the block says nothing.

        Args:
            details: Keywords of its trace call. The block has a duration of its own.
        """
        for name, value in details.items():
            if not _is_unsaid(value):
                self._beside.setdefault(name, value)

    @never_raises(no, cell=cell_of)
    def adopt(self, session_id: str, end: Callable[[], object] = no) -> None:
        """Take a session that was opened within the block, where there is none around it.

        Args:
            session_id: The session.
            end: Ends it: called once the stage is recorded, which may be now.
        """
        if self.is_open:
            self.session_id = self.session_id or session_id
        self._adopted.append(end)
        self._end_adopted()

    def _end_adopted(self) -> None:
        while not self.is_open and self._adopted:
            self._adopted.popleft()()


class _HitScope(StageScope):
    """A stage that has chunks to show.

    Args:
        read: Reads hits at once, so that no text waits for the block's end: given hits and what it returned before.
    """

    def __init__(
        self,
        cell: RuntimeCell,
        emit: Callable[..., None],
        session_id: str | None,
        details: Mapping[str, object],
        read: Callable[[object, object], object],
    ) -> None:
        super().__init__(cell, emit, session_id, details)
        self._read = read
        self._so_far: object = None
        self._within: list[object] = []
        self._failure: dict[str, object] = {}
        self._shown: list[object] = []

    @quiet
    def _enter(self) -> None:
        super()._enter()
        self._within, self._failure, self._shown = [], {}, []

    def _told(self) -> dict[str, object]:
        self._shown = self._collected()
        if self._within:
            self._beside["chunks"] = joined([one for one in self._within if isinstance(one, ChunkCollector)])
        else:
            # What failed was made good by whatever found something.
            self.fill(**self._failure)
        self._so_far, self._within = None, []
        return super()._told()

    def _collected(self) -> list[object]:
        return [self._so_far] if self._so_far is not None else self._within

    def _found(self, chunks: object, details: Mapping[str, object]) -> None:
        self._so_far = self._read(chunks, None)
        self._said.update(details, chunks=self._so_far)

    @property
    def chunk_ids(self) -> list[str]:
        """The ids of the hits so far, those of hits without one as they stand in the event."""
        found = self._collected() or self._shown
        return [name for one in found if isinstance(one, ChunkCollector) for name in one.chunk_ids]

    @never_raises(no, cell=cell_of)
    def found(self, hits: object, **failure: object) -> None:
        """Say what was found within the block; it stands where the block records nothing itself.

        Args:
            hits: What was found.
            failure: Why it was not, as keywords of the trace call, which stand where nothing else was found.
        """
        if failure.get("status", "ok") == "ok":
            self._take(self._read(hits, None))
        else:
            self._failure = failure

    def _take(self, found: object) -> None:
        self._within.append(found)

    @never_raises(no, cell=cell_of)
    def emit(self, hits: object, **details: object) -> None:
        """Record the stage at once, without a block: something else has seen it begin and end.

        Args:
            hits: What came out.
            details: Keywords of its trace call.
        """
        self._found(hits, details)
        self._trace(**{"session_id": self._given_id, **self._given, **self._told()})

    @never_raises(no, cell=cell_of)
    def add(self, *hits: object) -> None:
        """Say that further hits came out, as a stream of results does."""
        self._so_far = self._read(hits, self._so_far)
        self._said["chunks"] = self._so_far


class RetrievalScope(_HitScope):
    """A retrieval for the length of a block."""

    kind = "retrieval"

    @never_raises(no, cell=cell_of)
    def record(self, chunks: Hits = (), **details: Unpack[RetrievalDetails]) -> None:
        """Say what came out: hits of any shape `trace_retrieval` takes, and its keywords."""
        self._found(chunks, details)


class RerankScope(_HitScope):
    """A rerank for the length of a block."""

    kind = "rerank"

    def _take(self, found: object) -> None:
        # The last order is the order.
        self._within = [found]

    @never_raises(no, cell=cell_of)
    def record(self, chunks: Hits = (), **details: Unpack[RerankDetails]) -> None:
        """Say what came out: the new order, in any shape `trace_rerank` takes, and its keywords."""
        self._found(chunks, details)


class GenerationScope(StageScope):
    """A generation for the length of a block."""

    kind = "generation"

    @never_raises(no, cell=cell_of)
    def record(self, **details: Unpack[GenerationDetails]) -> None:
        """Add what is known of the generation: keywords as for `trace_generation`. May be called more than once."""
        self._said.update(details)

    @never_raises(no, cell=cell_of)
    def first_token(self) -> None:
        """Mark the moment the first token of a stream arrived; later calls change nothing."""
        self._said.setdefault("time_to_first_token_ms", (_clock.monotonic_ns() - self._started) / 1e6)
