"""Answers as server-sent events: pieces of the answer, its citations, the whole result; or how it failed.

`token` carries `{"text"}`, `citations` the citations used, `result` what the plain answer would have been, and `error`
a problem document. What fails before the first piece is answered with its own status instead.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from fastapi.responses import StreamingResponse
from ulid import ULID

from spanforge import _clock
from spanforge.reference import RagFailure, RagResult
from spanforge.sdk import sf_rag
from spanforge.server.asking import check_models, checked
from spanforge.server.problems import Problem, problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator

    from starlette.types import Receive, Scope, Send

    from spanforge.reference import User
    from spanforge.reference.asking.options import AskOptions
    from spanforge.server.models import QueryRequest
    from spanforge.server.service import Service

T = TypeVar("T")
_Item: TypeAlias = str | RagResult | None

MEDIA_TYPE: Final = "text/event-stream"


async def streamed(service: Service, user: User, body: QueryRequest, options: AskOptions) -> StreamingResponse:
    """Return an answer that comes piece by piece.

    Raises:
        Problem: It failed before the first piece.
    """
    run = _Run(service, user, body, options)
    first = await run.next()
    if isinstance(first, RagResult):
        # Nothing was sent yet: a refusal can still have its own status.
        try:
            checked(first)
        except Problem:
            run.end()
            raise
    return _Stream(run, first)


class _Stream(StreamingResponse):
    """Ends the run with the answer, even if the client is gone before the first piece is sent."""

    def __init__(self, run: _Run, first: str | RagResult | None) -> None:
        super().__init__(run.events(first), media_type=MEDIA_TYPE)
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._run.end()


class _Run:
    """One question at work in the pool: each piece is asked for when the client has taken the one before."""

    def __init__(self, service: Service, user: User, body: QueryRequest, options: AskOptions) -> None:
        self._service = service
        self._user = user
        self._deadline = _clock.monotonic() + service.settings.query_timeout_s
        # One context for all steps, whichever threads they run in: the trace's current session lives in it.
        self._context = contextvars.copy_context()
        self._items = self._work(body, options)
        self._line = str(ULID())
        self._step: asyncio.Future[_Item] | None = None
        service.throttle.enter(user.org_id)

    async def next(self) -> str | RagResult | None:
        """Return the next piece, None after the last.

        Raises:
            Problem: It failed, or took too long.
            RagFailure: A stage failed.
        """
        step = self._step = self._in_pool(self._advance)
        whole = False
        try:
            done, _ = await asyncio.wait({step}, timeout=max(0.0, self._deadline - _clock.monotonic()))
            if not done:
                raise Problem("TIMED_OUT")
            item = step.result()
            whole = item is not None
            return item
        finally:
            if not whole:
                self.end()

    async def events(self, item: str | RagResult | None) -> AsyncIterator[str]:
        """Yield the events, the first piece being at hand."""
        problem: Problem | None = None
        try:
            while item is not None:
                if isinstance(item, RagResult):
                    result = checked(item)
                    cited = [citation.model_dump(mode="json", by_alias=True) for citation in result.citations_used]
                    yield _event("citations", json.dumps(cited))
                    yield _event("result", result.model_dump_json(by_alias=True))
                else:
                    yield _event("token", json.dumps({"text": item}))
                item = await self.next()
        except RagFailure as failure:
            problem = problem_of(failure)
        except Problem as known:
            problem = known
        finally:
            self.end()
        if problem is not None:
            yield _event("error", json.dumps(problem.document()))

    def _in_pool(self, task: Callable[[], T]) -> asyncio.Future[T]:
        return self._service.in_pool(self._user.org_id, lambda: self._context.run(task), self._line)

    def _advance(self) -> _Item:
        return next(self._items, None)

    def _work(self, body: QueryRequest, options: AskOptions) -> Generator[str | RagResult]:
        user = self._user
        with (
            sf_rag.bind(org_id=user.org_id, actor_id=user.user_id),
            self._service.tenants.use(user.org_id) as tenant,
        ):
            check_models(tenant, body)
            yield from tenant.pipeline.stream(body.query, **options)

    def end(self) -> None:
        """Close the run in the pool once its step at hand is done, and only then give back its place."""
        step, self._step = self._step, None
        if step is None:
            return

        def close(_: object) -> None:
            if not step.cancelled():
                step.exception()
            if self._service.pool.is_closing:
                # It takes nothing more: there is no one left to hold up.
                self._context.run(self._items.close)
                return
            closing = self._in_pool(self._items.close)
            closing.add_done_callback(lambda _: self._service.throttle.leave(self._user.org_id))

        step.add_done_callback(close)


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"
