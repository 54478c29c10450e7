"""The geometry of the charts, in the units of an SVG's own box; the templates draw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spanforge.server.viewer.overview import Bucket, Percentiles

__all__ = ["Column", "Span", "columns", "nice_top", "spans_of"]

HEIGHT: Final = 100.0
_GAP: Final = 0.18


@dataclass(frozen=True, slots=True)
class Column:
    """A stacked column: `x` and `width` in percent, and parts as (kind, y, height) on a height of 100."""

    x: float
    width: float
    parts: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Where the percentiles of a stage lie, in percent of the longest 99th."""

    row: Percentiles
    p50: float
    p90: float
    p99: float


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


def spans_of(rows: Sequence[Percentiles]) -> list[Span]:
    """Return the percentiles of each stage on one scale."""
    top = max((row.p99 for row in rows), default=0) or 1
    return [Span(row, *(round(value * 100 / top, 3) for value in (row.p50, row.p90, row.p99))) for row in rows]
