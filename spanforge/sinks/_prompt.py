"""Connections whose answers have to be there by a moment, however slowly their bytes come."""

from __future__ import annotations

import http.client
import io
import socket
from functools import partial
from typing import Any

from spanforge import _clock

__all__ = ["PromptConnection", "PromptTlsConnection"]


class _Prompt(http.client.HTTPConnection):
    """Gives up an answer that is not there within the connection's timeout, which counts for all of it."""

    def getresponse(self) -> http.client.HTTPResponse:
        """Return the answer.

        Raises:
            TimeoutError: It, or later its body, was not there in time.
        """
        wait_s = self.timeout or 0.0
        self.response_class = partial(_Answer, wait_s=wait_s)  # pyright: ignore[reportAttributeAccessIssue]  a factory
        return super().getresponse()


class PromptConnection(_Prompt):
    """An HTTP connection."""


class PromptTlsConnection(_Prompt, http.client.HTTPSConnection):
    """An HTTPS connection."""


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, wait_s: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Reader(sock, wait_s))


class _Reader(io.RawIOBase):
    """Reads a socket until a moment; a timeout of the socket would count for each piece."""

    def __init__(self, sock: socket.socket, wait_s: float) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._wait_s = wait_s
        self._until = _clock.monotonic() + wait_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left = self._until - _clock.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        try:
            return self._raw.readinto(buffer)
        finally:
            self._sock.settimeout(self._wait_s)  # of the next request

    def close(self) -> None:
        self._raw.close()
        super().close()
