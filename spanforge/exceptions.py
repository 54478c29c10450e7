"""Every error spanforge raises, as one small tree.

Messages name the field and the remedy, never the value: a value may be a query, a document or a secret. The
same holds for what hangs on an exception, so nothing here is ever raised `from` an error that carries input.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "ConfigError",
    "DecodeError",
    "InvalidPayloadError",
    "MissingExtraError",
    "SinkWriteError",
    "SpanforgeError",
    "StrictModeError",
    "UnknownSessionError",
]


class SpanforgeError(Exception):
    """Base of everything spanforge raises."""


class ConfigError(SpanforgeError, ValueError):
    """A setting has a value that cannot be used; the message names the setting and says what would do."""


class InvalidPayloadError(SpanforgeError, ValueError):
    """A payload was built with a missing, unknown or invalid field; the message names it."""


class DecodeError(SpanforgeError, ValueError):
    """A stored line is not a spanforge event; the message gives the kind of damage, not the line."""


class StrictModeError(SpanforgeError, ValueError):
    """In strict mode: an input that would have been replaced and counted (see `configure(strict=True)`)."""


class UnknownSessionError(SpanforgeError, KeyError):
    """`end_session` was given an id that this process has never seen."""

    def __str__(self) -> str:
        return "unknown session id: pass one that trace_query() or join_session() returned in this process"


class MissingExtraError(SpanforgeError, ImportError):
    """An optional feature was asked for, and its packages are not installed.

    Attributes:
        extra: The extra of spanforge that has them.
    """

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} needs the '{extra}' extra: pip install 'spanforge[{extra}]'")


class SinkWriteError(SpanforgeError, OSError):
    """Raised by a sink that could not write a whole batch.

    Args:
        reason: A short code or class name, free of user text.
        delivered: How many events from the front of the batch are safely written.
        dropped: How many of them, beside those, were given up, by reason.
        retryable: False where trying the same events again cannot help.
        retry_after_s: Seconds the receiver asked to be left alone.
    """

    def __init__(
        self,
        reason: str,
        *,
        delivered: int = 0,
        dropped: Mapping[str, int] | None = None,
        retryable: bool = True,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.delivered = delivered
        self.dropped = dropped or {}
        self.retryable = retryable
        self.retry_after_s = retry_after_s
