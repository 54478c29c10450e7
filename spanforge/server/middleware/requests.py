"""The outermost layer: every request gets an id, a log line, and an answer, whatever is raised beneath.

The log has ids, digests, codes and times. It never has text, nor the message of an error, which might quote some.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import structlog
from starlette.requests import ClientDisconnect
from ulid import ULID

from spanforge import _clock
from spanforge.reference import RagFailure
from spanforge.sdk import sf_rag
from spanforge.server.middleware.limits import header
from spanforge.server.problems import Problem, answer, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log: Any = structlog.get_logger("spanforge.server")
_TRACEPARENT: Final = re.compile(rb"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9-]{8,64}")
"""Ids of requests that clients may choose; anything else gets one of ours."""
_REFUSAL_S: Final = 0.25
"""Seconds after which whoever asked too much is told so: one who asks again at once would take more of the others' time
by being refused than by being served."""
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)


class Requests:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await _Handling(scope, send).run(self._app, receive)


class _Handling:
    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        given = header(scope, b"x-request-id")
        self._id = given.decode() if _REQUEST_ID.fullmatch(given) else str(ULID())
        self._status = 0
        self._code = ""
        self._session_id = ""
        scope.setdefault("state", {})["request_id"] = self._id

    async def run(self, app: ASGIApp, receive: Receive) -> None:
        started = _clock.monotonic()
        problem: Problem | None = None
        upstream = _upstream(self._scope)
        tags = {"upstream_trace_id": upstream} if upstream else {}
        try:
            with sf_rag.bind(**tags):
                await app(self._scope, receive, self._on_send)
        except Problem as known:
            problem = known
        except RagFailure as failure:
            problem = problem_of(failure)
        except ClientDisconnect:
            # Nobody is there to be told; the log is.
            self._code = "CLIENT_GONE"
        except asyncio.CancelledError:
            # The server stops and waits no longer; left to itself, it would say that it failed.
            stopping = Problem("OVERLOADED", "The server is stopping; ask again.", {"Retry-After": "5"})
            self._code = stopping.code
            if not self._status:
                await answer(stopping, self._id)(self._scope, receive, self._on_send)
            raise
        finally:
            if problem is None:
                self._note(started, sys.exc_info()[0])
        if problem is not None:
            self._code = problem.code
            if not self._status:
                if problem.status == HTTPStatus.TOO_MANY_REQUESTS:
                    # What has come of the body need not wait as well.
                    problem.__traceback__ = None
                    await asyncio.sleep(_REFUSAL_S)
                await answer(problem, self._id)(self._scope, receive, self._on_send)
            self._note(started)

    async def _on_send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers: list[tuple[bytes, bytes]] = list(message.get("headers", []))
            present = {name.lower() for name, _ in headers}
            headers += [header for header in _HEADERS if header[0] not in present]
            headers.append((b"x-request-id", self._id.encode()))
            self._session_id = next((v.decode() for k, v in headers if k == b"x-spanforge-session"), "")
            message = {**message, "headers": headers}
        await self._send(message)

    def _note(self, started: float, error: type[BaseException] | None = None) -> None:
        route = self._scope.get("route")
        user = self._scope.get("state", {}).get("user")
        _log.info(
            "request",
            request_id=self._id,
            method=self._scope["method"] if route is not None else "",
            route=getattr(route, "path", ""),
            status=self._status,
            code=self._code,
            ms=round((_clock.monotonic() - started) * 1e3, 1),
            org=_digest(user.org_id) if user is not None else "",
            session_id=self._session_id,
            **({} if error is None else {"error": error.__name__}),
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _upstream(scope: Scope) -> str:
    """Return the trace id of a well-formed `traceparent`, empty where there is none."""
    given = header(scope, b"traceparent")
    match = _TRACEPARENT.fullmatch(given)
    return match[1].decode() if match is not None and not given.startswith(b"ff") else ""
