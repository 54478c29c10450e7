"""Requests of web applications: the session that their headers carry goes along, and ends with the last byte sent."""

# What a server hands over has no types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from typing import Any, TypeAlias

from spanforge.integrations._quiet import end_quietly, quiet
from spanforge.sdk import sf_rag
from spanforge.sdk.propagation import extract
from spanforge.sdk.scopes import Bind

__all__ = ["AsgiMiddleware", "WsgiMiddleware"]

Who: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, str]]
"""Tells who asks, from a request's ASGI scope or WSGI environment, in the keywords of `sf_rag.bind`."""


@quiet
def _bound(who: Who | None, told: Mapping[str, Any]) -> Bind | None:
    """Say who asks; None where nobody can tell, or what is told names nobody."""
    return None if who is None else sf_rag.bind(**who(told))


@contextmanager
def _request(headers: Any, who: Who | None, told: Mapping[str, Any]) -> Generator[None]:
    session_id = extract(headers)
    with ExitStack() as stack:
        if (bound := _bound(who, told)) is not None:
            stack.enter_context(bound)
        if session_id is not None:
            stack.callback(end_quietly, session_id)
            stack.enter_context(sf_rag.attach(session_id))
        yield


class AsgiMiddleware:
    """For FastAPI, Starlette, Django and whatever else speaks ASGI: `app.add_middleware(AsgiMiddleware)`.

    Args:
        app: The application.
        who: Tells who asks, from the request's scope, in the keywords of `sf_rag.bind`.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], who: Who | None = None) -> None:
        self._app = app
        self._who = who

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a request, a streamed one to its end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with _request(scope.get("headers") or (), self._who, scope):
            await self._app(scope, receive, send)


class WsgiMiddleware:
    """For Flask, Django and whatever else speaks WSGI: `app.wsgi_app = WsgiMiddleware(app.wsgi_app)`.

    Args:
        app: The application.
        who: Tells who asks, from the request's environment, in the keywords of `sf_rag.bind`.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], who: Who | None = None) -> None:
        self._app = app
        self._who = who

    def __call__(self, environ: Mapping[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request; its body is read in the request's own context, after this has returned."""
        return _Body(self._app, self._who, environ, start_response)


class _Body:
    """An answer as it is read: in a context of its own, which the server's thread never sees."""

    def __init__(self, app: Any, who: Who | None, environ: Mapping[str, Any], start_response: Any) -> None:
        self._context = copy_context()
        self._block = ExitStack()
        headers = {name[5:]: value for name, value in environ.items() if name in {"HTTP_BAGGAGE", "HTTP_TRACEPARENT"}}
        self._context.run(self._block.enter_context, _request(headers, who, environ))
        with ExitStack() as on_error:
            on_error.callback(self._context.run, self._block.close)
            self._parts = self._context.run(app, environ, start_response)
            self._iterator = self._context.run(iter, self._parts)
            on_error.pop_all()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return self._context.run(next, self._iterator)

    def close(self) -> None:
        """End the request, as servers do however it went."""
        with ExitStack() as last:
            last.callback(self._context.run, self._block.close)
            if hasattr(self._parts, "close"):
                self._context.run(self._parts.close)  # pyright: ignore[reportAttributeAccessIssue]
