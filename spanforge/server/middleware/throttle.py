"""How much one organisation, or one address, may ask, so that none can use up what the others need."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from spanforge import _clock
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Generator

_REMEMBERED: Final = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class Buckets:
    """Token buckets by name. The one not taken from for the longest time is forgotten, which is to say full.

    Args:
        per_minute: Tokens a bucket regains in a minute.
        burst: Tokens a full bucket holds.
    """

    def __init__(self, per_minute: float, burst: int) -> None:
        self._per_second = per_minute / 60
        self._burst = burst
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait_s(self, name: str) -> int:
        """Return after how many whole seconds a bucket has a token; 0 where it has one."""
        bucket = self._buckets.get(name)
        tokens = self._burst if bucket is None else self._refilled(bucket)
        return 0 if tokens >= 1 else max(1, math.ceil((1 - tokens) / self._per_second))

    def take(self, name: str) -> None:
        """Take a token out of a bucket, where it has one."""
        bucket = self._buckets.setdefault(name, _Bucket(self._burst, _clock.monotonic()))
        self._buckets.move_to_end(name)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        bucket.tokens = max(0.0, self._refilled(bucket) - 1)

    def _refilled(self, bucket: _Bucket) -> float:
        now = _clock.monotonic()
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._per_second)
        bucket.filled_at = now
        return bucket.tokens


class Throttle:
    """A token bucket and a count of work at hand for each organisation. Used from the event loop alone.

    Args:
        per_minute: Requests a bucket regains in a minute.
        burst: Requests a full bucket holds.
        at_once: Questions of all organisations worked on at once.
        at_once_per_org: Questions of one organisation worked on at once; never more than there are places left.
    """

    def __init__(self, *, per_minute: float, burst: int, at_once: int, at_once_per_org: int) -> None:
        self._at_once = at_once
        self._at_once_per_org = at_once_per_org
        self._buckets = Buckets(per_minute, burst)
        self._working: Counter[str] = Counter()

    @property
    def at_work(self) -> int:
        """Questions worked on now."""
        return self._working.total()

    def take(self, org_id: str) -> None:
        """Count a request.

        Raises:
            Problem: The organisation has made too many.
        """
        if wait := self._buckets.wait_s(org_id):
            raise Problem("RATE_LIMITED", headers={"Retry-After": str(wait)})
        self._buckets.take(org_id)

    def enter(self, org_id: str) -> None:
        """Count work that begins; `leave` must follow.

        Raises:
            Problem: Too much is at hand.
        """
        own, free = self._working[org_id], self._at_once - self._working.total()
        # Nobody takes more than there is left for the others: whoever comes later finds a place.
        if own >= min(self._at_once_per_org, free):
            raise Problem("TOO_MANY_AT_ONCE" if own else "OVERLOADED", headers={"Retry-After": "1"})
        self._working[org_id] += 1

    @contextmanager
    def working(self, org_id: str) -> Generator[None]:
        """Count work for the length of a block.

        Raises:
            Problem: Too much is at hand.
        """
        self.enter(org_id)
        try:
            yield
        finally:
            self.leave(org_id)

    def leave(self, org_id: str) -> None:
        """Count work that has ended."""
        self._working[org_id] -= 1
        if not self._working[org_id]:
            del self._working[org_id]
