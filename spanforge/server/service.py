"""What the routes work with: the parts of one server, put together once."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import Depends, Request

from spanforge.sdk import sf_rag
from spanforge.server.identity import Authenticator, Principal, bearer
from spanforge.server.jobs import JobRunner
from spanforge.server.keys import KeyStore
from spanforge.server.permissions import may
from spanforge.server.problems import Problem
from spanforge.server.tenants import Tenant, Tenants
from spanforge.server.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable

    from spanforge.sdk import ServerSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of one server.

    Attributes:
        throttle: Counts requests, and questions worked on.
        uploads: Counts uploads that arrive, which take place on the disk before anything works on them.
        pool: Threads in which the pipelines work: they compute, and must not hold up the event loop.
    """

    settings: ServerSettings
    keys: KeyStore
    authenticator: Authenticator
    tenants: Tenants
    jobs: JobRunner
    throttle: Throttle
    uploads: Throttle
    pool: ThreadPoolExecutor

    def close(self) -> None:
        """Stop the jobs, then close everything."""
        self.jobs.close()
        self.pool.shutdown()
        self.tenants.close()
        self.keys.close()

    async def work(self, principal: Principal, timeout_s: float, task: Callable[[Tenant], T]) -> T:
        """Do something with the caller's organisation in a thread, traced as the caller's.

        The place it takes among the work at hand is given back when the thread is done, not when nobody waits any
        more: a thread cannot be stopped, and must not be forgotten.

        Raises:
            Problem: Too much is at hand, or it took too long.
        """
        org_id = principal.org_id
        self.throttle.enter(org_id)

        def run() -> T:
            with sf_rag.bind(org_id=org_id, actor_id=principal.user.user_id), self.tenants.use(org_id) as tenant:
                return task(tenant)

        context = contextvars.copy_context()
        future = asyncio.get_running_loop().run_in_executor(self.pool, context.run, run)
        future.add_done_callback(lambda _: self.throttle.leave(org_id))
        done, _ = await asyncio.wait({future}, timeout=timeout_s)
        if not done:
            future.add_done_callback(_heard)
            raise Problem("TIMED_OUT")
        return future.result()


def _heard(future: asyncio.Future[Any]) -> None:
    """Take note of how abandoned work ended, which asyncio would complain about otherwise."""
    if not future.cancelled():
        future.exception()


def service_of(request: Request) -> Service:
    """Return the server that a request came to."""
    return request.app.state.service


async def admit(request: Request, service: Annotated[Service, Depends(service_of)]) -> Principal:
    """Let a request in: whose it is, whether the role suffices, whether it is one too many.

    Raises:
        Problem: It is not let in.
    """
    credential = bearer(request.headers.get("authorization"))
    challenge = 'Bearer realm="spanforge"'
    principal = None if credential is None else await service.authenticator.judge(credential)
    if principal is None:
        wrong = "" if credential is None else ', error="invalid_token"'
        raise Problem("UNAUTHENTICATED", headers={"WWW-Authenticate": challenge + wrong})
    request.state.principal = principal
    if not may(principal.user.roles, request.method, request.scope["route"].path):
        raise Problem("FORBIDDEN")
    service.throttle.take(principal.org_id)
    return principal


ServiceOf = Annotated[Service, Depends(service_of)]
Admitted = Annotated[Principal, Depends(admit)]
