"""Wrong credentials are few: an address that goes on sending them is not listened to for a while.

Keys cannot be guessed; but each guess costs a look into a file, or the checking of a signature.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from spanforge.server.middleware.limits import header
from spanforge.server.middleware.throttle import Buckets
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_REMEMBERED: Final = 10_000
_WITHOUT_FORM: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_V6_NETWORK: Final = 64
"""Bits of an IPv6 address that one household has in common: the rest is free to choose."""


class WrongCredentials:
    """Counts requests whose credential was wrong by the address they came from, and refuses more than a few.

    A credential that was right before is judged even so: behind a proxy or a shared connection all have one address,
    and one of them must not be able to lock out the others.

    Args:
        app: What answers otherwise.
        per_minute: Wrong credentials that an address may send in a minute, and at once.
        sign_in: Path to which browsers post a credential.
    """

    def __init__(self, app: ASGIApp, per_minute: int, sign_in: str) -> None:
        self._app = app
        self._sign_in = sign_in
        self._wrong = Buckets(per_minute, per_minute)
        self._right: OrderedDict[bytes, None] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request.

        Raises:
            Problem: Its address has sent too many wrong credentials.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given, is_sign_in = header(scope, b"authorization"), self._is_sign_in(scope)
        if not given and not is_sign_in:
            await self._app(scope, receive, send)
            return
        place = place_of(scope)
        digest = sha256(given).digest()
        # What a form holds is not known here: no header beside it vouches for that.
        if (is_sign_in or digest not in self._right) and (wait := self._wrong.wait_s(place)):
            raise Problem("RATE_LIMITED", headers={"Retry-After": str(wait)})

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == HTTPStatus.UNAUTHORIZED:
                self._wrong.take(place)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Problem as problem:
            if problem.status == HTTPStatus.UNAUTHORIZED:
                self._wrong.take(place)
            raise
        finally:
            if "user" in scope.get("state", {}):
                self._remember(digest)

    def _is_sign_in(self, scope: Scope) -> bool:
        return scope["method"] not in _WITHOUT_FORM and scope["path"].endswith(self._sign_in)

    def _remember(self, digest: bytes) -> None:
        self._right[digest] = None
        self._right.move_to_end(digest)
        if len(self._right) > _REMEMBERED:
            self._right.popitem(last=False)


def place_of(scope: Scope) -> str:
    """Return what stands for the place a request came from: its address, or the network of an IPv6 address."""
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, _V6_NETWORK), strict=False))
