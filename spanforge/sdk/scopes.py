"""Blocks that time themselves: `sf_rag.session(…)`, `.retrieval()`, `.rerank()`, `.generation()`, and `.bind(…)`.

All of them work with `with` and `async with`, end once however they are left, and may be left in another context than
they were entered in, as streams and abandoned generators do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, Unpack

from spanforge._text import class_name
from spanforge.namespaces.event import Binding
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import _coerce as coerce
from spanforge.sdk._block import Block, cell_of, is_failure, quiet
from spanforge.sdk._cell import RuntimeCell
from spanforge.sdk._context import Block as Entered
from spanforge.sdk._context import bound, current_session
from spanforge.sdk._keywords import GenerationDetails, RerankDetails, RetrievalDetails
from spanforge.sdk._never_raises import never_raises
from spanforge.sdk._runtime import Runtime
from spanforge.sdk._stage_scopes import GenerationScope, RerankScope, RetrievalScope, outcome_of

__all__ = [
    "IDLE",
    "AttachScope",
    "Bind",
    "GenerationScope",
    "RerankScope",
    "RetrievalScope",
    "SessionScope",
    "idle",
    "outcome_of",
]

MAX_TAGS: Final = 50
_MAX_ENTERED: Final = 100
"""Times that one scope can be entered before it is left once."""


def idle(*_args: Any, **_kwargs: Any) -> Idle:
    """What a call that makes a scope returns when all else failed."""
    return IDLE


class Bind(Block):
    """Who events are made for: bound as soon as it is made, unbound when its block is left.

    Without a block it holds for the rest of the context, which is to say the task.
    """

    def __init__(
        self, runtime: Runtime, org_id: object, team_id: object, actor_id: object, tags: Mapping[str, object]
    ) -> None:
        note = runtime.note
        before = bound.get() or Binding()
        kept = dict(before.tags)
        for key, value in tags.items():
            if len(kept) >= MAX_TAGS and key not in kept:
                note("tags_too_many")
                break
            kept[coerce.name(key, "tags", note)] = coerce.name(value, "tags", note)
        self._bound = bound.enter(
            Binding(
                coerce.name(org_id, "org_id", note) or before.org_id,
                coerce.name(team_id, "team_id", note) or before.team_id,
                coerce.name(actor_id, "actor_id", note) or before.actor_id,
                kept,
            )
        )

    def _enter(self) -> None:
        """Bound already."""

    @quiet
    def _leave(self, kind: type[BaseException] | None) -> None:  # noqa: ARG002  an error changes nothing here
        self._bound.leave()


class Tracer(Protocol):
    """What a session's scope needs of the client whose session it is."""

    cell: RuntimeCell

    def retrieval(self, session_id: str | None = None, **details: Unpack[RetrievalDetails]) -> RetrievalScope: ...

    def rerank(
        self, model: str = "", session_id: str | None = None, **details: Unpack[RerankDetails]
    ) -> RerankScope: ...

    def generation(
        self, model: str = "", session_id: str | None = None, **details: Unpack[GenerationDetails]
    ) -> GenerationScope: ...


class SessionScope(Block):
    """A session for the length of a block.

    Args:
        client: Whose session.
        begin: Opens the session and returns its id; it holds the query's digest, not its text.
        end: Ends a session, given its id and the class of an error, and returns its summary.

    Attributes:
        session_id: Its id, from the moment the block is entered.
        summary: Its summary, once the block is left; as of then, where an answer is yet to be read.
    """

    def __init__(
        self,
        client: Tracer,
        begin: Callable[[], str],
        end: Callable[[str, str], RAGSessionPayload | None],
    ) -> None:
        self.session_id = ""
        self.summary: RAGSessionPayload | None = None
        self._client = client
        self._cell = client.cell
        self._begin = begin
        self._end = end
        self._blocks: deque[Entered[str | None]] = deque(maxlen=_MAX_ENTERED)

    def __repr__(self) -> str:
        state = "open" if self._blocks else "ended" if self.session_id else "not entered"
        return f"<SessionScope {self.session_id!r}: {state}>" if self.session_id else f"<SessionScope: {state}>"

    @quiet
    def _enter(self) -> None:
        self.session_id = self._begin()
        if not self.session_id:
            return
        self._blocks.append(current_session.enter(self.session_id))

    @quiet
    def _leave(self, kind: type[BaseException] | None) -> None:
        # One that was entered twice, as a scope should not be, is two sessions, and ends both.
        if not self._blocks:
            return
        block = self._blocks.pop()
        block.leave()
        self.summary = self._end(block.value or "", class_name(kind) if kind is not None and is_failure(kind) else "")

    @never_raises(idle, cell=cell_of)
    def retrieval(self, session_id: str | None = None, **details: Unpack[RetrievalDetails]) -> RetrievalScope:
        """Time a block of this session as a retrieval."""
        return self._client.retrieval(self.session_id if session_id is None else session_id, **details)

    @never_raises(idle, cell=cell_of)
    def rerank(self, model: str = "", session_id: str | None = None, **details: Unpack[RerankDetails]) -> RerankScope:
        """Time a block of this session as a rerank."""
        return self._client.rerank(model, self.session_id if session_id is None else session_id, **details)

    @never_raises(idle, cell=cell_of)
    def generation(
        self, model: str = "", session_id: str | None = None, **details: Unpack[GenerationDetails]
    ) -> GenerationScope:
        """Time a block of this session as a generation."""
        return self._client.generation(model, self.session_id if session_id is None else session_id, **details)


class AttachScope(Block):
    """An open session made current for the length of a block."""

    def __init__(self, session_id: str | None) -> None:
        self._session_id = session_id
        self._blocks: deque[Entered[str | None]] = deque(maxlen=_MAX_ENTERED)

    @quiet
    def _enter(self) -> None:
        self._blocks.append(current_session.enter(self._session_id))

    @quiet
    def _leave(self, kind: type[BaseException] | None) -> None:  # noqa: ARG002  an error changes nothing here
        if self._blocks:
            self._blocks.pop().leave()


class Idle(SessionScope, RetrievalScope, RerankScope, GenerationScope, AttachScope, Bind):
    """Any scope, where the stack has no room to make one: a block of it records nothing."""

    def __init__(self) -> None:
        self.session_id = ""
        self.summary = None
        self._so_far, self._within, self._shown = None, [], []

    def __repr__(self) -> str:
        return "<Idle>"

    def _enter(self) -> None:
        """Nothing begins."""

    def _leave(self, kind: type[BaseException] | None) -> None:
        """Nothing ends."""

    def retrieval(self, *_args: Any, **_kwargs: Any) -> RetrievalScope:
        """Nor does a stage."""
        return self

    def rerank(self, *_args: Any, **_kwargs: Any) -> RerankScope:
        """Nor does a stage."""
        return self

    def generation(self, *_args: Any, **_kwargs: Any) -> GenerationScope:
        """Nor does a stage."""
        return self

    def record(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing is kept."""

    def add(self, *hits: object) -> None:
        """Nothing is kept."""

    def first_token(self) -> None:
        """Nothing is kept."""


IDLE: Final = Idle()
