"""What the routes work with: the parts of one server, put together once."""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from fastapi import Depends, Request
from ulid import ULID

from spanforge.reference import User
from spanforge.reference.ingesting.fair_queue import FairQueue
from spanforge.sdk import sf_rag
from spanforge.server.auth.identity import Authenticator, bearer
from spanforge.server.auth.keys import KeyStore
from spanforge.server.auth.permissions import may
from spanforge.server.ingest.jobs import JobRunner
from spanforge.server.middleware.throttle import Throttle
from spanforge.server.problems import Problem
from spanforge.server.tenants import Tenant, Tenants

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spanforge.sdk import ServerSettings

T = TypeVar("T")
_EVENTS: Final = "events.sqlite"


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of one server.

    Attributes:
        throttle: Counts requests, and questions worked on.
        uploads: Counts uploads that arrive, which take place on the disk before anything works on them.
        pool: Threads in which the pipelines work, organisations by turns: they compute, and must not hold up the event
            loop.
    """

    settings: ServerSettings
    keys: KeyStore
    authenticator: Authenticator
    tenants: Tenants
    jobs: JobRunner
    throttle: Throttle
    uploads: Throttle
    pool: FairQueue

    @property
    def events(self) -> Path:
        """Where the server's own events are kept, for the pages to read."""
        return self.settings.home / _EVENTS

    def close(self) -> None:
        """Stop the jobs, then close everything."""
        self.jobs.close()
        self.pool.close()
        self.tenants.close()
        self.keys.close()

    async def work(self, user: User, task: Callable[[Tenant], T], *, quick: bool = False) -> T:
        """Do something with the caller's organisation in a thread, traced as the caller's.

        The place it takes among the work at hand is given back when the thread is done, not when nobody waits any
        more: a thread cannot be stopped, and must not be forgotten.

        Args:
            user: The caller.
            task: What to do.
            quick: It may take as long as a search; otherwise, as long as an answer.

        Raises:
            Problem: Too much is at hand, or it took too long.
        """
        org_id = user.org_id
        self.throttle.enter(org_id)

        def run() -> T:
            with sf_rag.bind(org_id=org_id, actor_id=user.user_id), self.tenants.use(org_id) as tenant:
                return task(tenant)

        context = contextvars.copy_context()
        future = self.in_pool(org_id, lambda: context.run(run))
        future.add_done_callback(lambda _: self.throttle.leave(org_id))
        timeout_s = self.settings.retrieve_timeout_s if quick else self.settings.query_timeout_s
        done, _ = await asyncio.wait({future}, timeout=timeout_s)
        if not done:
            future.add_done_callback(_heard)
            raise Problem("TIMED_OUT")
        return future.result()

    def in_pool(self, org_id: str, task: Callable[[], T], line: str = "") -> asyncio.Future[T]:
        """Do something in a thread of the pool, when it is the organisation's turn.

        Args:
            org_id: Whose turn it takes.
            task: What to do.
            line: Tasks of one line are done one after the other; without one, beside all others.
        """
        return asyncio.wrap_future(self.pool.submit(org_id, line or str(ULID()), task))


def _heard(future: asyncio.Future[Any]) -> None:
    """Take note of how abandoned work ended, which asyncio would complain about otherwise."""
    if not future.cancelled():
        future.exception()


async def service_of(request: Request) -> Service:
    """Return the server that a request came to. Awaited, or the framework would look it up in a thread."""
    return request.app.state.service


async def admit(request: Request, service: Annotated[Service, Depends(service_of)]) -> User:
    """Let a request in: whose it is, whether the role suffices, whether it is one too many.

    Raises:
        Problem: It is not let in.
    """
    credential = bearer(request.headers.get("authorization"))
    challenge = 'Bearer realm="spanforge"'
    user = None if credential is None else await service.authenticator.judge(credential)
    if user is None:
        wrong = "" if credential is None else ', error="invalid_token"'
        raise Problem("UNAUTHENTICATED", headers={"WWW-Authenticate": challenge + wrong})
    request.state.user = user
    if not may(user.roles, request.method, request.scope["route"].path):
        raise Problem("FORBIDDEN")
    service.throttle.take(user.org_id)
    return user


ServiceOf = Annotated[Service, Depends(service_of)]
Admitted = Annotated[User, Depends(admit)]
