"""OTLP over HTTP with protobuf bodies.

Redirects are not followed: a receiver must not be able to send the events, and the credentials with them,
somewhere else. Certificates are always verified.
"""

from __future__ import annotations

import gzip
import http.client
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from spanforge import _clock
from spanforge._version import __version__
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.sinks._endpoint import Endpoint
from spanforge.sinks._otlp_transport import Answer, RequestTooLargeError, Signal, UnsupportedSignalError
from spanforge.sinks._prompt import PromptConnection, PromptTlsConnection

__all__ = ["RETRYABLE", "HttpTransport", "retry_after"]

_MAX_ANSWER: Final = 1 << 20
_MAX_RETRY_AFTER_S: Final = 3_600.0
_OK: Final = range(200, 300)
_TOO_LARGE: Final = 413
RETRYABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_UNSUPPORTED: Final = frozenset({404, 405, 501})
_STALE: Final = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
"""How a kept connection fails that the receiver closed while it was idle."""


def retry_after(value: str | None) -> float | None:
    """Return the seconds a `Retry-After` header asks for, at most an hour; None where it cannot be read."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), _MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    now = datetime.fromtimestamp(_clock.wall_ns() / 1e9, UTC)
    return min(max(0.0, (moment - now).total_seconds()), _MAX_RETRY_AFTER_S)


def _tls(certificate: str) -> ssl.SSLContext:
    problem = ""
    try:
        return ssl.create_default_context(cafile=certificate or None)
    except OSError as error:
        problem = type(error).__name__
    raise ConfigError(f"certificate: the file of certificate authorities cannot be read ({problem})")


class HttpTransport:
    """Sends OTLP requests over HTTP, on a kept connection.

    Args:
        endpoint: Base URL; the path of each signal is added.
        traces: URL for traces, where it was given as a whole.
        headers: Sent with each request.
        timeout_s: Longest wait for the connection, and again for a whole answer.
        certificate: File of certificate authorities; the system's where empty.
        compress: Send bodies with gzip.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        traces: Endpoint | None,
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        certificate: str,
        compress: bool,
    ) -> None:
        self._urls: dict[Signal, tuple[Endpoint, str]] = {
            "traces": (traces, traces.path or "/") if traces else (endpoint, f"{endpoint.path}/v1/traces"),
            "logs": (endpoint, f"{endpoint.path}/v1/logs"),
            "metrics": (endpoint, f"{endpoint.path}/v1/metrics"),
        }
        self._headers = {
            **headers,
            "content-type": "application/x-protobuf",
            "user-agent": f"spanforge/{__version__}",
            **({"content-encoding": "gzip"} if compress else {}),
        }
        self._compress = compress
        self._timeout_s = timeout_s
        self._context = _tls(certificate) if any(url.secure for url, _ in self._urls.values()) else None
        self._connections: dict[Endpoint, http.client.HTTPConnection] = {}

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send one request (see `Transport.send`)."""
        endpoint, path = self._urls[signal]
        payload = gzip.compress(body, 1) if self._compress else body
        kept = endpoint in self._connections
        while True:
            try:
                response, answer = self._exchange(endpoint, path, payload)
            except (OSError, http.client.HTTPException) as error:
                problem = type(error).__name__
                self.close()
                if not kept or not isinstance(error, _STALE):
                    break
                kept = False
            else:
                return self._judge(response, answer)
        # Raised here, outside the handler: an HTTP error holds parts of the answer.
        raise SinkWriteError(problem)

    def _exchange(self, endpoint: Endpoint, path: str, payload: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        connection = self._connection(endpoint)
        connection.request("POST", path, payload, self._headers)
        response = connection.getresponse()
        answer = response.read(_MAX_ANSWER)
        if response.length and len(answer) < _MAX_ANSWER:
            raise http.client.IncompleteRead(b"", response.length)
        if not response.isclosed():
            self.close()
        return response, answer

    def _judge(self, response: http.client.HTTPResponse, answer: bytes) -> Answer:
        status = response.status
        if status in _OK:
            if len(answer) >= _MAX_ANSWER:
                raise SinkWriteError("answer_unreadable")
            return Answer(answer, (response.getheader("content-type") or "").partition(";")[0].strip().lower())
        if status == _TOO_LARGE:
            raise RequestTooLargeError
        if status in _UNSUPPORTED:
            raise UnsupportedSignalError(f"http_{status}", retryable=False)
        wait = retry_after(response.getheader("retry-after"))
        raise SinkWriteError(f"http_{status}", retryable=status in RETRYABLE, retry_after_s=wait)

    def _connection(self, endpoint: Endpoint) -> http.client.HTTPConnection:
        connection = self._connections.get(endpoint)
        if connection is None:
            host, port, timeout = endpoint.host, endpoint.port, self._timeout_s
            connection = (
                PromptTlsConnection(host, port, timeout=timeout, context=self._context)
                if endpoint.secure
                else PromptConnection(host, port, timeout=timeout)
            )
            self._connections[endpoint] = connection
        return connection

    def close(self) -> None:
        """Close the connections."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    def forget(self) -> None:
        """Let go of the child's copies of the sockets; that says nothing to the receiver."""
        self.close()
