"""The documents behind the traces: asked, and looked up, with the rights of whoever looks at the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

if TYPE_CHECKING:
    from spanforge.reference import Pipeline, RagResult
    from spanforge.reference.index import IndexRow

__all__ = ["AskableDocuments", "Documents", "LocalDocuments"]


class Documents(Protocol):
    """What pages need to show a passage. What cannot be done is an HTTPException with a sentence, here and below."""

    async def passage(self, request: Request, chunk_id: str) -> IndexRow | None:
        """Return a passage that whoever sent the request may query."""
        ...


@runtime_checkable
class AskableDocuments(Documents, Protocol):
    """What they need to be asked, too."""

    async def ask(self, request: Request, question: str) -> RagResult:
        """Answer a question as whoever sent the request."""
        ...

    async def rate(self, request: Request, session_id: str, rating: str) -> None:
        """Record what whoever sent the request thinks of an answer."""
        ...


class LocalDocuments:
    """The index of this machine's user, for passages alone: it is asked on the command line.

    Args:
        pipeline: Over the index.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def passage(self, request: Request, chunk_id: str) -> IndexRow | None:  # noqa: ARG002  there is one user
        """Return a passage of the user's own sources."""
        return await run_in_threadpool(self._pipeline.passage, chunk_id)
