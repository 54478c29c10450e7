"""The documents of a server, for its pages: asked and looked up with the rights of whoever is signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from starlette.exceptions import HTTPException

from spanforge.namespaces.feedback import FeedbackRating
from spanforge.reference.failures import RagFailure
from spanforge.server.asking import checked
from spanforge.server.auth.permissions import may
from spanforge.server.feedback import rate
from spanforge.server.models import FeedbackRequest
from spanforge.server.problems import Problem, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.requests import Request

    from spanforge.reference import RagResult, User
    from spanforge.reference.index import IndexRow
    from spanforge.server.service import Service
    from spanforge.server.tenants import Tenant

T = TypeVar("T")


class ServedDocuments:
    """Does for a page what the routes do for a program, under the same limits.

    Args:
        service: The parts of the server.
        events: Its own store of events.
    """

    def __init__(self, service: Service, events: Path) -> None:
        self._service, self._events = service, events

    async def ask(self, request: Request, question: str) -> RagResult:
        """Answer a question as whoever is signed in."""
        return await self._work(request, lambda tenant, user: checked(tenant.pipeline.ask(question, user=user)))

    async def passage(self, request: Request, chunk_id: str) -> IndexRow | None:
        """Return a passage of a source that whoever is signed in may query."""
        return await self._work(request, lambda tenant, user: tenant.pipeline.passage(chunk_id, user=user))

    async def rate(self, request: Request, session_id: str, rating: str) -> None:
        """Record a thumb."""
        wanted = FeedbackRequest(rating=FeedbackRating(rating))
        await self._work(request, lambda _, user: rate(self._events, user, session_id, wanted))

    async def _work(self, request: Request, task: Callable[[Tenant, User], T]) -> T:
        said: Problem
        try:
            user = await self._user(request)
            return await self._service.work(user, lambda tenant: task(tenant, user))
        except Problem as problem:
            said = problem
        except RagFailure as failure:
            said = problem_of(failure)
        raise HTTPException(said.status, str(said.document()["detail"]), dict(said.headers))

    async def _user(self, request: Request) -> User:
        user = await self._service.authenticator.judge(request.state.visit.credential)
        if user is None or not may(user.roles, "POST", "/api/rag/query"):
            raise Problem("FORBIDDEN")
        return user
