"""A stage of a run that is under way: a retrieval, a rerank, or a call to a model."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from spanforge import _clock
from spanforge.integrations._quiet import quiet
from spanforge.sdk import sf_rag

if TYPE_CHECKING:
    from spanforge.integrations._runs import Run

__all__ = ["Kind", "OpenRetrieval", "Stage", "current_call", "current_retrieval"]

Kind: TypeAlias = Literal["retrieval", "rerank", "generation"]
_ILLEGIBLE: Final = object()
_OUTCOME: Final = ("status", "error_message")

current_call: ContextVar[Stage | None] = ContextVar("spanforge_model_call", default=None)
"""The call to a model that a framework has begun and no client has taken up yet."""
current_retrieval: ContextVar[OpenRetrieval | None] = ContextVar("spanforge_retrieval", default=None)
"""The retrieval that the code at work now is within, unless it is done: what is found in it is recorded with it."""


@quiet
def _read(read: Callable[[], Any]) -> Any:
    return read()


class OpenRetrieval:
    """A retrieval that is under way, whoever records it.

    Attributes:
        is_done: Whether it is over.
        scores: What stores said of the documents that they gave it, by the documents' identity.
    """

    __slots__ = ("is_done", "scores")

    def __init__(self) -> None:
        self.is_done = False
        # With the documents themselves, or another could have the identity of one that is gone.
        self.scores: dict[int, tuple[Any, Any]] = {}


class Stage(OpenRetrieval):
    """A retrieval or a call to a model that is under way.

    Attributes:
        details: What is known of it, as keywords of its trace call.
        beside: What a client knows of it that has taken it up; it fills in what the framework does not say.
        is_recorded: Whether it has been recorded, which it is once it is over.
        model: The model that is called; of a retriever, its name.
        query: What a retriever was asked.
        run: The run it is part of.
    """

    __slots__ = (
        "_children", "_elsewhere", "_outer", "_parent", "_scope", "_stands_back", "_started_ns", "beside", "details",
        "is_recorded", "kind", "model", "query", "run",
    )  # fmt: skip

    def __init__(self, run: Run, kind: Kind, parent: Stage | None) -> None:
        super().__init__()
        self.run = run
        self.model = ""
        self.query: Any = None
        self.details: dict[str, Any] = {}
        self.beside: dict[str, Any] = {}
        self.kind = kind
        self._parent = parent
        self._children = 0
        outer = current_retrieval.get() if kind == "retrieval" else None
        # What a decorator or a store's method records is recorded once; of a framework's own, each is its stage.
        self._stands_back = outer is not None and not isinstance(outer, Stage)
        self._outer = outer if outer is not None and not outer.is_done else None
        if kind == "retrieval" and not self._stands_back:
            current_retrieval.set(self)
        if parent is not None and kind == "retrieval":
            parent.has_within()
        self.is_recorded = False
        self._scope = self._explicit_scope()
        self._elsewhere = run.elsewhere()
        self._started_ns = _clock.monotonic_ns()

    def has_within(self) -> None:
        """Say that a retrieval within it is recorded: what this one finds is those lists in a new order."""
        self._children += 1

    def first_token(self) -> None:
        """Mark the moment the first token arrived; later calls change nothing."""
        self.details.setdefault("time_to_first_token_ms", self._elapsed_ms())

    def finish(self, hits: Any = None, **details: Any) -> None:
        """Record it, once.

        Args:
            hits: What a retrieval found.
            details: Further keywords of its trace call.
        """
        with self.run.lock:
            if self.is_done:
                return
            self.is_done = True
            if current_call.get() is self:
                current_call.set(None)
            said = {"latency_ms": self._elapsed_ms(), **self.beside}
            for told in (self.details, details):
                said |= {name: value for name, value in told.items() if value is not None}
            self.details = said
        try:
            self._emit(hits)
        finally:
            self.is_recorded = True
            if current_retrieval.get() is self:
                current_retrieval.set(self._outer)
            self._scope = self._outer = None
            self.run.done(self)

    def answered(self, read: Callable[[], Any]) -> None:
        """Record it by its answer; one that cannot be read has come all the same.

        Args:
            read: Returns what a retrieval found, or keywords of a generation's trace call.
        """
        found = _read(read)
        if self.kind == "generation":
            self.finish(**(found or {}))
        else:
            self.finish(_ILLEGIBLE if found is None else found)

    def fail(self, error: object) -> None:
        """Record that it failed; being cancelled is no failure."""
        kind = error if isinstance(error, type) else type(error)
        names = {one.__name__ for one in kind.__mro__}
        if names & {"CancelledError", "GeneratorExit", "KeyboardInterrupt"}:
            self.cancel()
        else:
            is_timeout = bool(names & {"TimeoutError", "APITimeoutError", "TimeoutException"})
            self.finish(status="timeout" if is_timeout else "error", error_message=kind)

    def cancel(self) -> None:
        """Record that nobody waited for its end."""
        self.finish(status="cancelled" if self.kind == "generation" else "partial")

    def _elapsed_ms(self) -> float:
        return (_clock.monotonic_ns() - self._started_ns) / 1e6

    def _explicit_scope(self) -> Any:
        """Return the application's own scope that this may be part of, where there is one."""
        # A framework may call in a thread that has nothing of the context that the run began in.
        scope: Any = sf_rag.current_scope() or self.run.scope
        if scope is None or not scope.is_open:
            return None
        is_other = self.kind == "generation" and not (scope.kind == "generation" and scope.take_up())
        return None if is_other else scope

    @property
    def session_id(self) -> str:
        return self._elsewhere or self.run.session_id

    def _emit(self, hits: Any) -> None:
        if self._stands_back:
            return
        if self._scope is not None:
            # One within a step of the run knows of no session where the application has opened none.
            self._scope.adopt(self.session_id)
        if self.kind == "generation":
            self._emit_generation()
            return
        chunk_ids = self._emit_hits(hits)
        if self._elsewhere is not None or self._parent is not None:
            return
        if self._scope is not None:
            # What the scope records itself is said once it is left.
            self.run.shown.so_far(chunk_ids)
        else:
            failed = self.details.get("status", "ok") not in {"ok", "partial"}
            self.run.shown.add(chunk_ids, in_place=self.kind == "rerank" and not failed)

    def _emit_generation(self) -> None:
        own = [] if self._elsewhere else self.run.shown.ids
        self.details.setdefault("chunk_ids_used", own or sf_rag.cell.get().shown(self.session_id))
        if self._scope is None:
            sf_rag.trace_generation(self.session_id, self.model, **self.details)
        else:
            self._scope.fill(model=self.model, **self.details)

    def _emit_hits(self, hits: Any) -> list[str]:
        """Record what was found, or have the application's own scope know of it; return its ids."""
        # What several retrievers found, put together by one around them, is their lists in a new order.
        is_rerank = self.kind == "rerank" or self._children > 0
        scope = self._scope
        if scope is not None and scope.kind in {self.kind, "rerank" if is_rerank else "retrieval"}:
            if self._parent is None:
                failure = {name: self.details.pop(name) for name in _OUTCOME if name in self.details}
                is_retrieval = scope.kind == "retrieval"
                scope.fill(**({"query_hash": self.query} if is_retrieval else {"model": self.model, **self.details}))
                scope.found(hits, **failure)
            return scope.chunk_ids
        scope = (
            sf_rag.rerank(self.model, self.session_id)
            if is_rerank
            else sf_rag.retrieval(self.session_id, query_hash=self.query or "")
        )
        scope.emit(hits, **self.details)
        return scope.chunk_ids
