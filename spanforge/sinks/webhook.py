"""The webhook sink: each escalation as one signed request.

Signed as the Standard Webhooks specification says: receivers have libraries for it. Redirects are not followed, and an
address inside a private network is refused unless it is allowed: who sets a URL must not reach what only this host may.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import ipaddress
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from spanforge import _clock
from spanforge._version import __version__
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.namespaces.stages import ESCALATED
from spanforge.sinks._endpoint import Endpoint, parse_endpoint
from spanforge.sinks._otlp_http import RETRYABLE, retry_after
from spanforge.sinks._prompt import PromptConnection
from spanforge.sinks.base import BaseSink

__all__ = ["WebhookSink"]

_SHORTEST_SECRET: Final = 24
_PACKED: Final = b"whsec_"
_LONGEST_WAIT_S: Final = 60.0
_TRANSLATED: Final = (ipaddress.ip_network("::ffff:0:0/96"), ipaddress.ip_network("64:ff9b::/96"))
"""What ends with the IPv4 address that is meant."""
# Global by their look, and yet ways to an address that may not be: they hold one, or once named a site's own.
_INWARD: Final = tuple(
    ipaddress.ip_network(one)
    for one in ("::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "2002::/16", "fec0::/10", "192.88.99.0/24")
)


class WebhookSink(BaseSink):
    """Sends each `llm.rag.escalated` as JSON in a POST request; other events are none of its business.

    What the receiver does not take is tried again, as of any sink; a spool in front of it keeps it over a restart.

    Args:
        url: http or https, without credentials.
        secret: Key of the signature, at least 24 bytes; the receiver has it too. One that begins with `whsec_` is
            base64, as libraries of the specification take it.
        allow_private: Send to addresses of private networks and of this host as well.
        timeout_s: Longest wait for the connection, and again for the whole answer, in seconds, up to 60.

    Raises:
        ConfigError: A value cannot be used; the message does not repeat it.
    """

    def __init__(self, url: str, secret: bytes, *, allow_private: bool = False, timeout_s: float = 5.0) -> None:
        self._endpoint = parse_endpoint(url, "url")
        self._path = urlsplit(url).path or "/"  # as it is: with a slash at its end it may be another resource
        key = _key(secret)
        if len(key) < _SHORTEST_SECRET:
            raise ConfigError(f"secret: give {_SHORTEST_SECRET} bytes or more; secrets.token_bytes(32) makes some")
        if not 0 < timeout_s <= _LONGEST_WAIT_S:
            raise ConfigError("timeout_s: give seconds, above 0 and up to 60")
        self._key = key
        self._allow_private = allow_private
        self._timeout_s = timeout_s
        self.name = f"webhook:{self._endpoint.authority}"

    def write(self, events: Sequence[Event], /) -> None:
        """Send the escalations among some events.

        Raises:
            SinkWriteError: The receiver did not take one, or its address is private; those before it arrived.
        """
        for place, event in enumerate(events):
            if event.event_type == ESCALATED and (problem := self._problem(event)):
                code, retryable, wait_s = problem
                raise SinkWriteError(code, delivered=place, retryable=retryable, retry_after_s=wait_s)

    def _problem(self, event: Event) -> tuple[str, bool, float | None] | None:
        """Send one; return what went wrong, whether another attempt may help, and when."""
        try:
            addresses = self._addresses()
            if not addresses:
                return "private_address", False, None
            status, wait_s = self._post(addresses, event)
        except (OSError, UnicodeError, http.client.HTTPException) as error:  # a name with an empty part has no encoding
            return type(error).__name__, True, None
        return None if 200 <= status < 300 else (f"http_{status}", status in RETRYABLE, wait_s)  # noqa: PLR2004

    def _addresses(self) -> list[str]:
        """Return what may be connected to, looked up once: a name could mean another address the next moment."""
        host, port = self._endpoint.host, self._endpoint.port
        found = dict.fromkeys(str(place[0]) for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        return [one for one in found if self._allow_private or _is_public(one)]

    def _post(self, addresses: Sequence[str], event: Event) -> tuple[int, float | None]:
        connection = _Connection(self._endpoint, addresses, self._timeout_s)
        try:
            connection.request("POST", self._path, event.encode(), self._headers(event))
            response = connection.getresponse()  # what follows its head says nothing that is needed
            return response.status, retry_after(response.getheader("retry-after"))
        finally:
            connection.close()

    def _headers(self, event: Event) -> dict[str, str]:
        seconds = str(_clock.wall_ns() // 1_000_000_000)
        signed = b".".join((event.event_id.encode(), seconds.encode(), event.encode()))
        return {
            "content-type": "application/json",
            "user-agent": f"spanforge/{__version__}",
            "webhook-id": event.event_id,
            "webhook-timestamp": seconds,
            "webhook-signature": f"v1,{base64.b64encode(hmac.digest(self._key, signed, 'sha256')).decode()}",
        }


def _key(secret: bytes) -> bytes:
    """Return the bytes that sign; none where they cannot be had."""
    if not secret.startswith(_PACKED):
        return secret
    with suppress(ValueError):
        return base64.b64decode(secret.removeprefix(_PACKED), validate=True)
    return b""


class _Connection(PromptConnection):
    """A connection to one of some addresses, in the name of a host."""

    def __init__(self, endpoint: Endpoint, addresses: Sequence[str], timeout_s: float) -> None:
        super().__init__(endpoint.host, endpoint.port, timeout=timeout_s)
        self._addresses = addresses
        self._context = ssl.create_default_context() if endpoint.secure else None
        self._wait_s = timeout_s

    def connect(self) -> None:
        """Connect to the first address that answers; together they have as long as one."""
        *others, last = self._addresses
        connected = None
        for address in others:
            with suppress(OSError):
                connected = self._connected(address)
                break
        connected = connected or self._connected(last)
        self.sock = self._context.wrap_socket(connected, server_hostname=self.host) if self._context else connected

    def _connected(self, address: str) -> socket.socket:
        connected = socket.create_connection((address, self.port), self._wait_s / len(self._addresses))
        connected.settimeout(self._wait_s)
        return connected


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if any(ip in network for network in _TRANSLATED):
        ip = ipaddress.IPv4Address(ip.packed[-4:])
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _INWARD)
