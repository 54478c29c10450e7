"""What carries OTLP requests: one attempt a call. Whoever calls decides whether there is another."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, TypeAlias

from spanforge.exceptions import SinkWriteError

__all__ = ["Answer", "RequestTooLargeError", "Signal", "Transport", "UnsupportedSignalError"]

Signal: TypeAlias = Literal["traces", "logs", "metrics"]


class RequestTooLargeError(Exception):
    """The receiver refuses a request of this size; a part of it may pass."""


class UnsupportedSignalError(SinkWriteError):
    """The receiver does not take this signal."""


class Answer(NamedTuple):
    """What a receiver says to a request it took.

    Attributes:
        body: Its answer.
        media_type: What the answer is, in lower case; empty where it does not say.
    """

    body: bytes
    media_type: str = ""


class Transport(Protocol):
    """Sends encoded requests."""

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send one request and return the receiver's answer.

        Raises:
            RequestTooLargeError: It is too large for the receiver.
            UnsupportedSignalError: The receiver does not take the signal.
            SinkWriteError: It did not arrive; says whether a new attempt may help, and when.
        """
        ...

    def close(self) -> None:
        """Let go of the connection; the next `send` makes one."""
        ...

    def forget(self) -> None:
        """Forget the parent's connection in a forked child, without touching it."""
        ...
