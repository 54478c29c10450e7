"""The only reader of time. Wall time says when; monotonic time says how long."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache, partial

wall_ns = time.time_ns
# Wrapped, so that tools which freeze an application's time do not freeze our waits: they replace what they recognise.
monotonic_ns = partial(time.monotonic_ns)
monotonic = partial(time.monotonic)

_NS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMAT = "%Y-%m-%dT%H:%M:%S"


@lru_cache(maxsize=64)
def _second(second: int) -> str:
    """A burst of events, and the ends of one session, share few seconds."""
    return time.strftime(_FORMAT, time.gmtime(second))


def timestamp(ns: int) -> str:
    """Format nanoseconds since the epoch as `YYYY-MM-DDThh:mm:ss.ffffffZ`."""
    second, rest = divmod(ns, _NS)
    return f"{_second(second)}.{rest // 1000:06d}Z"


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
