"""Sums up what events measure, series by series, and accounts for what a receiver has of it.

A caller's thread leaves the event and goes on; whoever next looks at the figures adds it up. Events are read before
sampling and before any queue, so figures are those of everything that was traced.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from spanforge import _clock
from spanforge.metrics.instruments import Attributes, Instrument, Values

__all__ = ["Meter", "Point", "PointLedger", "Snapshot"]

_MOST_UNREAD: Final = 512
_MOST_UNREAD_BYTES: Final = 1 << 20
_MOST_SERIES: Final = 2_000
"""Series of one instrument; OpenTelemetry's own default. What comes beyond shares one series."""
_OVERFLOW: Final[Attributes] = (("otel.metric.overflow", "true"),)


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured under one set of attributes.

    Attributes:
        count: How many measurements.
        total: Their sum.
        buckets: How many fell into each bucket, the last one open; empty for a counter.
    """

    count: int = 0
    total: float = 0
    buckets: tuple[int, ...] = ()

    def since(self, earlier: Point) -> Point:
        """Return what came after an earlier point of the same series."""
        buckets = tuple(now - then for now, then in zip_longest(self.buckets, earlier.buckets, fillvalue=0))
        return Point(self.count - earlier.count, self.total - earlier.total, buckets)

    def plus(self, later: Point) -> Point:
        """Return this point with what came after it."""
        buckets = tuple(one + more for one, more in zip_longest(self.buckets, later.buckets, fillvalue=0))
        return Point(self.count + later.count, self.total + later.total, buckets)


class _Series:
    """One instrument under one set of attributes."""

    __slots__ = ("buckets", "count", "settled", "total")

    def __init__(self, buckets: int) -> None:
        self.count = 0
        self.total: float = 0
        self.buckets = [0] * buckets
        self.settled = Point()

    def point(self) -> Point:
        return Point(self.count, self.total, tuple(self.buckets))


@dataclass(frozen=True, slots=True)
class PointLedger:
    """What became of the metric points meant for one receiver, at one instant.

    A point is the new state of a series, however many measurements made it and however often it is sent:
    accepted = delivered + failed + dropped + pending.

    Attributes:
        accepted: Points that came to be.
        delivered: Points the receiver took.
        failed: Points the receiver refused. Where totals are sent, a later one that it takes makes up for them.
        dropped: Points given up, by reason: `unsupported` where the receiver takes no metrics, `shutdown`.
        pending: Points that wait to be sent, or to be sent again.
        last_error: Class or code of the last error; empty if there was none.
    """

    accepted: int
    delivered: int
    failed: int
    dropped: Mapping[str, int]
    pending: int
    last_error: str = ""

    @property
    def lost(self) -> int:
        """Points the receiver refused, and those that nobody was left to send."""
        return self.failed + self.dropped.get("shutdown", 0)

    @property
    def balanced(self) -> bool:
        """True where the ledger adds up; it always is."""
        return self.accepted == self.delivered + self.failed + sum(self.dropped.values()) + self.pending


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The points of one moment.

    Attributes:
        start_ns: Since when they count, in nanoseconds since the epoch.
        end_ns: The moment.
        points: By instrument and attributes, totals since the meter began.
    """

    start_ns: int
    end_ns: int
    points: Mapping[Instrument, Mapping[Attributes, Point]]


class Meter:
    """The series of some instruments.

    Args:
        instruments: What is measured.
        delta: Give out what came since the last settlement, in place of totals since the beginning.
    """

    def __init__(self, instruments: Iterable[Instrument], *, delta: bool = False) -> None:
        self._instruments = tuple(instruments)
        self._delta = delta
        self._by_event: dict[str, list[Instrument]] = {}
        for instrument in self._instruments:
            for event_type in instrument.event_types:
                self._by_event.setdefault(event_type, []).append(instrument)
        self.reset()

    def reset(self) -> None:
        """Begin at zero, with a lock of its own: what was measured belongs to the parent of a forked child."""
        # Re-entrant, because a signal handler may trace while its own thread is in here.
        self._lock = threading.RLock()
        self._reading = False
        self._unread: deque[tuple[str, Values]] = deque()
        self._unread_bytes = 0
        self._series: dict[Instrument, dict[Attributes, _Series]] = {made: {} for made in self._instruments}
        self._start_ns = self._settled_ns = _clock.wall_ns()
        self._delivered = self._failed = 0
        self._dropped: Counter[str] = Counter()
        self._last_error = ""

    # -- measuring ----------------------------------------------------------------------------------------------

    def record(self, event_type: str, payload: Values, size: int = 0) -> None:
        """Take note of an event.

        Args:
            event_type: Its type.
            payload: Its payload, which does not change any more.
            size: Estimated bytes of it.
        """
        if event_type not in self._by_event:
            return
        self._unread.append((event_type, payload))
        self._unread_bytes += size
        if len(self._unread) >= _MOST_UNREAD or self._unread_bytes >= _MOST_UNREAD_BYTES:
            self.read()

    def read(self) -> None:
        """Add up what was noted."""
        with self._lock:
            if self._reading:
                # A signal handler came in the middle: whoever it interrupted goes on.
                return
            self._reading, self._unread_bytes = True, 0
            try:
                for _ in range(len(self._unread)):
                    self._add(*self._unread.popleft())
            finally:
                self._reading = False

    def _add(self, event_type: str, payload: Values) -> None:
        for instrument in self._by_event[event_type]:
            for attributes, value in instrument.read(event_type, payload):
                series = self._find(instrument, attributes)
                series.count += 1
                series.total += value
                if instrument.bounds:
                    series.buckets[bisect_left(instrument.bounds, value)] += 1

    def _find(self, instrument: Instrument, attributes: Attributes) -> _Series:
        found = self._series[instrument]
        if attributes not in found:
            if len(found) >= _MOST_SERIES:
                attributes = _OVERFLOW
            if attributes not in found:
                found[attributes] = _Series(len(instrument.bounds) + 1 if instrument.bounds else 0)
        return found[attributes]

    # -- giving out ---------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return every point as of now."""
        with self._lock:
            self.read()
            points = {
                instrument: {attributes: series.point() for attributes, series in found.items()}
                for instrument, found in self._series.items()
                if found
            }
            return Snapshot(self._start_ns, _clock.wall_ns(), points)

    def outgoing(self) -> Snapshot:
        """Return what a receiver is to be sent: totals, or what came since the last settlement."""
        with self._lock:
            taken = self.snapshot()
            if not self._delta:
                return taken
            news = {
                instrument: {
                    attributes: point.since(settled)
                    for attributes, point in found.items()
                    if point.count > (settled := self._series[instrument][attributes].settled).count
                }
                for instrument, found in taken.points.items()
            }
            return Snapshot(self._settled_ns, taken.end_ns, {name: found for name, found in news.items() if found})

    def settle(self, sent: Snapshot, *, refused: int = 0, error: str = "", dropped: str = "") -> None:
        """Record what became of points.

        Args:
            sent: As `outgoing` gave them.
            refused: How many of them the receiver refused; as many as there are where it refused them all.
            error: Class or code of the error, where there was one.
            dropped: Why they were given up, where they were.
        """
        with self._lock:
            settled = sum(self._settle_series(*one) for one in self._states(sent))
            self._settled_ns = sent.end_ns
            self._last_error = error or self._last_error
            if dropped:
                self._dropped[dropped] += settled
            else:
                failed = min(refused, settled)
                self._failed += failed
                self._delivered += settled - failed

    def note(self, error: str) -> None:
        """Remember the class or code of an error after which the same points are tried again."""
        self._last_error = error

    def _states(self, sent: Snapshot) -> Iterable[tuple[_Series, Point]]:
        for instrument, found in sent.points.items():
            for attributes, point in found.items():
                yield self._series[instrument][attributes], point

    def _settle_series(self, series: _Series, point: Point) -> bool:
        before = series.settled
        series.settled = before.plus(point) if self._delta else point
        return series.settled.count > before.count

    @property
    def pending(self) -> int:
        """How many points wait to be sent."""
        with self._lock:
            self.read()
            return sum(
                series.count > series.settled.count for found in self._series.values() for series in found.values()
            )

    def ledger(self) -> PointLedger:
        """Return what became of the points so far."""
        with self._lock:
            pending, dropped = self.pending, dict(self._dropped)
            return PointLedger(
                accepted=self._delivered + self._failed + sum(dropped.values()) + pending,
                delivered=self._delivered,
                failed=self._failed,
                dropped=dropped,
                pending=pending,
                last_error=self._last_error,
            )
