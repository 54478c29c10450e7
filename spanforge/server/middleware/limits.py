"""Limits on what arrives, before anything reads it: the length of a body, the time it takes, and the host it is for."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Final

from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from spanforge.sdk import ServerSettings

UPLOADS: Final = "/api/rag/ingest"
LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class BodyLimit:
    """Refuses bodies that are too long or too slow, whether they say their length or not."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope)
        length = header(scope, b"content-length")
        if length.isdigit() and int(length) > limit:
            raise Problem("TOO_LARGE", headers={"Connection": "close"})
        await self._app(scope, _Body(receive, limit, self._settings.body_timeout_s), send)

    def _limit(self, scope: Scope) -> int:
        is_upload = header(scope, b"content-type").lower().startswith(b"multipart/") and scope["path"] == UPLOADS
        return self._settings.max_upload_bytes if is_upload else self._settings.max_body_bytes


class _Body:
    """Receives a body and counts what has come."""

    def __init__(self, receive: Receive, limit: int, timeout_s: float) -> None:
        self._receive = receive
        self._limit = limit
        self._deadline = asyncio.get_running_loop().time() + timeout_s
        self._received = 0
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        late = False
        message: Message = {"type": "http.disconnect"}
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            late = True
        if late:
            raise Problem("BODY_TIMEOUT", headers={"Connection": "close"})
        self._received += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._received > self._limit:
            raise Problem("TOO_LARGE", headers={"Connection": "close"})
        return message


class HostCheck:
    """Refuses requests for hosts that are not this server.

    On loopback this is what keeps a page in the user's own browser, whose name was made to point here, from using it.

    Args:
        app: What answers otherwise.
        names: Names that may be asked for, without port; empty for any.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and self._names and _name(header(scope, b"host")) not in self._names:
            raise Problem("WRONG_HOST")
        await self._app(scope, receive, send)


def header(scope: Scope, name: bytes) -> bytes:
    """Return a header of a request; empty where it has none."""
    return next((value for key, value in scope["headers"] if key == name), b"")


def _name(host: bytes) -> str:
    text = host.decode("latin-1").lower()
    end = text.find("]") + 1 if text.startswith("[") else text.rfind(":")
    return text[:end] if end > 0 else text


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen on can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
