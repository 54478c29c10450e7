"""The only reader of time. Wall time says when; monotonic time says how long."""

from __future__ import annotations

import time
from datetime import UTC, datetime

wall_ns = time.time_ns
monotonic_ns = time.monotonic_ns
monotonic = time.monotonic

_NS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMAT = "%Y-%m-%dT%H:%M:%S"
_latest: tuple[int, str] = (-1, "")
"""The last whole second formatted: a burst of events shares it, and replacing one tuple is atomic."""


def timestamp(ns: int) -> str:
    """Format nanoseconds since the epoch as `YYYY-MM-DDThh:mm:ss.ffffffZ`."""
    global _latest  # noqa: PLW0603  a one-entry cache; see its docstring
    second, rest = divmod(ns, _NS)
    known, text = _latest
    if known != second:
        text = time.strftime(_FORMAT, time.gmtime(second))
        _latest = (second, text)
    return f"{text}.{rest // 1000:06d}Z"


def parse_timestamp(text: str) -> int:
    """Return the nanoseconds since the epoch of an ISO 8601 time; one without a zone is read as UTC.

    Raises:
        ValueError: `text` is not an ISO 8601 time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    delta = moment - _EPOCH
    return ((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds) * 1000
