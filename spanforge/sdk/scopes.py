"""Blocks that time themselves: `sf_rag.session(…)`, `.retrieval()`, `.rerank()`, `.generation()`, and `.bind(…)`.

All of them work with `with` and `async with`, end once however they are left, and may be left in another context than
they were entered in, as streams and abandoned generators do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from spanforge import _clock
from spanforge._text import class_name
from spanforge.namespaces.event import Binding
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import _coerce as coerce
from spanforge.sdk._context import Frame, bound, current_session

if TYPE_CHECKING:
    from spanforge.sdk._runtime import Runtime
    from spanforge.sdk.rag import SFRAGClient

__all__ = ["AttachScope", "Bind", "GenerationScope", "RerankScope", "RetrievalScope", "SessionScope"]

MAX_TAGS: Final = 50


def _is_failure(kind: type[BaseException] | None) -> bool:
    """Tell whether leaving a block with this is an error: a consumer that stops reading a stream makes none."""
    return kind is not None and not issubclass(kind, GeneratorExit)


class _Block(ABC):
    """Enter and leave, synchronously or not."""

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(kind)

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(kind)

    @abstractmethod
    def _enter(self) -> None: ...

    @abstractmethod
    def _leave(self, kind: type[BaseException] | None) -> None: ...


class Bind(_Block):
    """Who events are made for: bound as soon as it is made, unbound when its block is left.

    Without a block it holds for the rest of the context, which is to say the task.
    """

    def __init__(
        self, runtime: Runtime, org_id: object, team_id: object, actor_id: object, tags: dict[str, Any]
    ) -> None:
        note = runtime.note
        before = bound.get() or Binding()
        kept = dict(before.tags)
        for key, value in tags.items():
            if len(kept) >= MAX_TAGS and key not in kept:
                note("tags_too_many")
                break
            kept[coerce.name(key, "tags", note)] = coerce.name(value, "tags", note)
        self._frame = bound.enter(
            Binding(
                coerce.name(org_id, "org_id", note) or before.org_id,
                coerce.name(team_id, "team_id", note) or before.team_id,
                coerce.name(actor_id, "actor_id", note) or before.actor_id,
                kept,
            )
        )

    def _enter(self) -> None:
        """Bound already."""

    def _leave(self, kind: type[BaseException] | None) -> None:  # noqa: ARG002  an error changes nothing here
        bound.leave(self._frame)


class SessionScope(_Block):
    """A session for the length of a block.

    Args:
        client: Whose session.
        begin: Opens the session and returns its id; it holds the query's digest, not its text.
        end: Ends a session, given its id and the class of an error, and returns its summary.

    Attributes:
        session_id: Its id, from the moment the block is entered.
        summary: Its summary, once the block is left.
    """

    def __init__(
        self,
        client: SFRAGClient,
        begin: Callable[[], str],
        end: Callable[[str, str], RAGSessionPayload | None],
    ) -> None:
        self.session_id = ""
        self.summary: RAGSessionPayload | None = None
        self._client = client
        self._begin = begin
        self._end = end
        self._frames: list[Frame[str | None]] = []

    def __repr__(self) -> str:
        state = "open" if self._frames else "ended" if self.session_id else "not entered"
        return f"<SessionScope {self.session_id!r}: {state}>" if self.session_id else f"<SessionScope: {state}>"

    def _enter(self) -> None:
        self.session_id = self._begin()
        self._frames.append(current_session.enter(self.session_id))

    def _leave(self, kind: type[BaseException] | None) -> None:
        # One that was entered twice, as a scope should not be, is two sessions, and ends both.
        if not self._frames:
            return
        frame = self._frames.pop()
        current_session.leave(frame)
        self.summary = self._end(frame.value or "", class_name(kind) if kind is not None and _is_failure(kind) else "")

    def retrieval(self, **details: Any) -> RetrievalScope:
        """Time a block of this session as a retrieval."""
        return self._client.retrieval(**{"session_id": self.session_id, **details})

    def rerank(self, model: str = "", **details: Any) -> RerankScope:
        """Time a block of this session as a rerank."""
        return self._client.rerank(model, **{"session_id": self.session_id, **details})

    def generation(self, model: str = "", **details: Any) -> GenerationScope:
        """Time a block of this session as a generation."""
        return self._client.generation(model, **{"session_id": self.session_id, **details})


class AttachScope(_Block):
    """An open session made current for the length of a block."""

    def __init__(self, session_id: str | None) -> None:
        self._session_id = session_id
        self._frames: list[Frame[str | None]] = []

    def _enter(self) -> None:
        self._frames.append(current_session.enter(self._session_id))

    def _leave(self, kind: type[BaseException] | None) -> None:  # noqa: ARG002  an error changes nothing here
        if self._frames:
            current_session.leave(self._frames.pop())


class _StageScope(_Block):
    """A stage that is emitted when its block is left, with the block's duration and outcome.

    Args:
        emit: The trace call, given the session's id and keywords.
        session_id: Whose stage; None takes the current session's when the block is entered.
        details: Keywords known already.
    """

    def __init__(self, emit: Callable[..., None], session_id: str | None, details: dict[str, Any]) -> None:
        self._trace = emit
        self._given_id = self._session_id = session_id
        self._details = details
        self._started = 0
        self._done = False

    def _enter(self) -> None:
        self._started, self._done = _clock.monotonic_ns(), False
        if self._given_id is None:
            # Now, not when it is left: a stream may be closed in a context that knows no session.
            self._session_id = current_session.get()

    def _leave(self, kind: type[BaseException] | None) -> None:
        if self._done:
            return
        self._done = True
        elapsed_ms = (_clock.monotonic_ns() - self._started) / 1e6
        details = {"session_id": self._session_id, "latency_ms": elapsed_ms, **self._details}
        if kind is not None and _is_failure(kind):
            details["status"] = "timeout" if issubclass(kind, TimeoutError) else "error"
            details["error_message"] = kind
        self._trace(**details)


class _HitScope(_StageScope):
    """A stage that has chunks to show.

    Args:
        read: Reads hits at once, so that no text waits for the block's end: given hits and what it returned before.
    """

    def __init__(
        self,
        emit: Callable[..., None],
        session_id: str | None,
        details: dict[str, Any],
        read: Callable[[object, object], object],
    ) -> None:
        super().__init__(emit, session_id, details)
        self._read = read
        self._so_far: object = None

    def record(self, chunks: object = (), **details: Any) -> None:
        """Say what came out: hits of any shape `trace_retrieval` takes, and its keywords."""
        self._so_far = self._read(chunks, None)
        self._details.update(details, chunks=self._so_far)

    def add(self, *hits: object) -> None:
        """Say that further hits came out, as a stream of results does."""
        self._so_far = self._read(hits, self._so_far)
        self._details["chunks"] = self._so_far


class RetrievalScope(_HitScope):
    """A retrieval for the length of a block."""


class RerankScope(_HitScope):
    """A rerank for the length of a block."""


class GenerationScope(_StageScope):
    """A generation for the length of a block."""

    def record(self, **details: Any) -> None:
        """Add what is known of the generation: keywords as for `trace_generation`. May be called more than once."""
        self._details.update(details)

    def first_token(self) -> None:
        """Mark the moment the first token of a stream arrived; later calls change nothing."""
        self._details.setdefault("time_to_first_token_ms", (_clock.monotonic_ns() - self._started) / 1e6)
