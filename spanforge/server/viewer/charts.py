"""The geometry of the charts, in the units of an SVG's own box; the templates draw it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spanforge.server.viewer.overview import Bucket, Percentiles

__all__ = ["Column", "Decades", "Span", "columns", "decades", "nice_top"]

HEIGHT: Final = 100.0
_GAP: Final = 0.18
_MARKS: Final = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A stacked column: `x` and `width` in percent, and parts as (kind, y, height) on a height of 100."""

    x: float
    width: float
    parts: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Where the percentiles of a stage lie, in percent of a logarithmic axis; 0 is left of it."""

    row: Percentiles
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True)
class Decades:
    """A logarithmic axis of time: whole powers of ten microseconds, with what lies on it.

    Attributes:
        marks: Some of the powers, as microseconds and percent.
    """

    marks: list[tuple[int, float]]
    spans: list[Span]


def nice_top(largest: float) -> float:
    """Return the top of an axis: the next of 1, 2 or 5 times a power of ten."""
    step = 1.0
    while largest > step:
        step *= 2.5 if str(step)[0] == "2" else 2
    return step


def columns(buckets: Sequence[Bucket], top: float) -> list[Column]:
    """Return the columns of a histogram over time, errors at the foot, where they line up to be compared."""
    width = 100 / max(len(buckets), 1)
    found: list[Column] = []
    for number, bucket in enumerate(buckets):
        parts: list[tuple[str, float, float]] = []
        y = HEIGHT
        for kind, count in (("error", bucket.error), ("partial", bucket.partial), ("ok", bucket.ok)):
            height = count * HEIGHT / top
            if count:
                y -= height
                parts.append((kind, round(y, 3), round(height, 3)))
        found.append(Column(round(number * width + width * _GAP / 2, 3), round(width * (1 - _GAP), 3), tuple(parts)))
    return found


def decades(rows: Sequence[Percentiles]) -> Decades:
    """Return the percentiles of each stage on one axis.

    Logarithmic, because stages differ by powers of ten and so do the two ends of one stage.
    """
    times = [value for row in rows for value in (row.p50, row.p99) if value > 0] or [1]
    low = math.floor(math.log10(min(times)))
    high = max(low + 1, math.ceil(math.log10(max(times))))

    def place(us: int) -> float:
        return round(100 * (math.log10(us) - low) / (high - low), 3) if us > 0 else 0.0

    step = max(1, math.ceil((high - low) / _MARKS))
    return Decades(
        [(10**power, place(10**power)) for power in range(low, high + 1, step) if power >= 0],
        [Span(row, place(row.p50), place(row.p90), place(row.p99)) for row in rows],
    )
