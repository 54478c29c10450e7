"""The geometry of the charts, in the units of an SVG's own box; the templates draw it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from spanforge.analysis.figures import PERCENTILES
from spanforge.namespaces.stages import STAGE_WORDS
from spanforge.viewer.filters import NAMES
from spanforge.viewer.overview import Bucket, Overview, Percentiles
from spanforge.viewer.shown import amount, dollars, duration, moment, percent, score, stars

__all__ = ["Column", "Decades", "Span", "Trend", "columns", "decades", "drawn", "nice_top", "trends"]

HEIGHT: Final = 100.0
Leads: TypeAlias = Mapping[str, str]
_GAP: Final = 0.18
_MARKS: Final = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A stacked column.

    Attributes:
        x: In percent, as `width` is.
        parts: As (kind, y, height) on a height of 100.
        leads: What a filter has for its sessions.
    """

    x: float
    width: float
    parts: tuple[tuple[str, float, float], ...]
    leads: Leads


@dataclass(frozen=True, slots=True)
class Span:
    """Where the percentiles of a stage lie, in percent of a logarithmic axis; 0 is left of it."""

    row: Percentiles
    p50: float
    p95: float
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


def columns(buckets: Sequence[Bucket], length: int, top: float) -> list[Column]:
    """Return the columns of a histogram over time, errors at the foot, where they line up to be compared.

    Args:
        buckets: Of sessions.
        length: That of a bucket, in microseconds.
        top: Sessions at the top of the axis.
    """
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
        x = round(number * width + width * _GAP / 2, 3)
        ends = bucket.start, bucket.start + length - 1
        since, until = (moment(us).replace(" ", "T") for us in ends)
        leads = {"range": "", "since": since, "until": until}
        found.append(Column(x, round(width * (1 - _GAP), 3), tuple(parts), leads))
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
        [Span(row, **{name: place(getattr(row, name)) for name in PERCENTILES}) for row in rows],
    )


def _share(bucket: Bucket, part: int) -> float | None:
    return part / bucket.sessions if bucket.sessions else None


def _percent(share: float) -> str:
    return percent(share, 1)


@dataclass(frozen=True, slots=True)
class Trend:
    """How one figure went over time.

    Attributes:
        title: What it is; `leads` is what a filter has for its sessions.
        points: Polylines on a box of 100 by 100; one ends where nothing was measured.
        dots: Points that stand alone, between spans without a measure.
        top: The largest value, as it is written; `last` is the last.
    """

    title: str
    leads: Leads
    points: list[str]
    dots: list[tuple[float, float]]
    top: str
    last: str


_SLOWEST, _WORST_GROUNDED, _MOST_TOKENS = {"sort": "latency"}, {"sort": "grounding", "order": "asc"}, {"sort": "tokens"}
_FAILED, _EMPTY, _ESCALATED, _RATED = {"status": "error"}, {"mark": "empty"}, {"mark": "escalated"}, {"mark": "rated"}

LEADS: Final[Mapping[str, Leads]] = {
    **{f"latency {name}, {stage}": {"sort": stage} for stage in STAGE_WORDS for name in PERCENTILES},
    **{f"latency {name}, all stages": _SLOWEST for name in PERCENTILES},
    "sessions in error": _FAILED,
    "mean grounding": _WORST_GROUNDED,
    "empty retrievals": _EMPTY,
    "tokens a session": _MOST_TOKENS,
    "mean rating": _RATED,
    "sessions escalated": _ESCALATED,
}
"""What a filter has for the sessions behind a figure that is compared."""

_TRENDS: Final[tuple[tuple[str, Leads, Callable[[Bucket], float | None], Callable[[float], str]], ...]] = (
    ("Mean latency", _SLOWEST, lambda one: one.latency, duration),
    ("Mean grounding", _WORST_GROUNDED, lambda one: one.grounding, score),
    ("Sessions in error", _FAILED, lambda one: _share(one, one.error), _percent),
    ("Empty retrievals", _EMPTY, lambda one: _share(one, one.empty), _percent),
    ("Tokens a session", _MOST_TOKENS, lambda one: _share(one, one.tokens), amount),
    ("Mean cost", {}, lambda one: one.cost, dollars),
    ("Escalated", _ESCALATED, lambda one: _share(one, one.escalated), _percent),
    ("Mean rating, of 5", _RATED, lambda one: one.rating, stars),
)


def trends(figures: Overview) -> list[Trend]:
    """Return how the figures went that were measured at all."""
    found = (_trend(title, leads, [of(one) for one in figures.volume], shown) for title, leads, of, shown in _TRENDS)
    return [trend for trend in found if trend is not None]


def drawn(figures: Overview) -> dict[str, Any]:
    """Return everything that the template of the overview draws figures with."""
    top = nice_top(max((bucket.sessions for bucket in figures.volume), default=1))
    return {
        "figures": figures,
        "leads": LEADS,
        "kinds": NAMES,
        "compared": None,
        "problem": "",
        "percentiles": PERCENTILES,
        "top": top,
        "columns": columns(figures.volume, figures.width, top),
        "trends": trends(figures),
        "axis": decades(figures.latency),
        "grounding_top": max(figures.grounding) or 1,
        "source_top": max((source.chunks for source in figures.sources), default=1),
    }


def _trend(title: str, leads: Leads, values: list[float | None], shown: Callable[[float], str]) -> Trend | None:
    known = [value for value in values if value is not None]
    if not known or not max(known):
        return None
    top, step = max(known), HEIGHT / max(len(values) - 1, 1)
    runs: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((round(place * step, 2), round(HEIGHT * (1 - value / top), 2)))
    lines = [" ".join(f"{x},{y}" for x, y in run) for run in runs if len(run) > 1]
    return Trend(title, leads, lines, [run[0] for run in runs if len(run) == 1], shown(top), shown(known[-1]))
