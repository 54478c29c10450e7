"""Two sets of sessions side by side: each figure of both, and between what their difference lies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

from spanforge.analysis.figures import PERCENTILES, percentile
from spanforge.analysis.intervals import Interval, Values, of_means, of_percentiles, of_shares
from spanforge.namespaces.stages import STAGE_WORDS

__all__ = ["FigureChange", "Samples", "Side", "changes"]

_FEWEST: Final = 2
Side: TypeAlias = tuple[Values, Values]
"""Of each session that has any samples of a measure their sum, and how many they are."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One figure of two sets of sessions.

    Attributes:
        name: What it is.
        unit: `ms`, `share`, `score`, `tokens`, `of 5` or `USD`.
        baseline: Its value in the set that is compared with; None where nothing was measured. `value` is the other's.
        baseline_samples: How many samples that is of; `samples` likewise.
        low: With 95 % confidence the difference is no less; None where so few samples bound nothing. `high`: no more.
    """

    name: str
    unit: str
    baseline: float | None
    baseline_samples: int
    value: float | None
    samples: int
    low: float | None = None
    high: float | None = None

    @property
    def difference(self) -> float | None:
        """Value less baseline."""
        return None if self.value is None or self.baseline is None else self.value - self.baseline

    @property
    def differs(self) -> bool:
        """True where the interval does not hold 0."""
        return (self.low is not None and self.low > 0) or (self.high is not None and self.high < 0)

    @property
    def verdict(self) -> str:
        """What that comes to in words."""
        if self.difference is None:
            return "not measured on both sides"
        if not self.differs:
            return "no difference that this many sessions could show"
        return "higher" if self.difference > 0 else "lower"


class Samples(Protocol):
    """One of the two sets."""

    def of(self, measure: str) -> Side:
        """Return the samples of a measure; none where it was not measured."""
        ...


def changes(baseline: Samples, sessions: Samples) -> list[FigureChange]:
    """Return every figure that one of two sets of sessions has."""
    found = [_compared(row, baseline.of(row.measure), sessions.of(row.measure)) for row in _ROWS]
    return [figure for figure in found if figure.samples or figure.baseline_samples]


class _Row(NamedTuple):
    """A figure: what it is called, its unit, where its samples come from, what they come to, and its interval."""

    name: str
    unit: str
    measure: str
    value: Callable[[Values, Values], float]
    interval: Callable[[Side, Side], Interval]


def _compared(row: _Row, baseline: Side, sessions: Side) -> FigureChange:
    values = [row.value(*side) if len(side[0]) else None for side in (baseline, sessions)]
    samples = [int(side[1].sum()) for side in (baseline, sessions)]
    bounds: list[float | None] = [None, None]
    if min(len(baseline[0]), len(sessions[0])) >= _FEWEST:
        bounds = [float(one) if math.isfinite(one) else None for one in row.interval(baseline, sessions)]
    return FigureChange(row.name, row.unit, values[0], samples[0], values[1], samples[1], *bounds)


def _mean(sums: Values, counts: Values) -> float:
    return math.fsum(sums) / float(counts.sum())


def _between_means(first: Side, second: Side) -> Interval:
    return of_means(first[0], second[0])


def _nearest_rank(sums: Values, _: Values, share: float) -> float:
    ordered = sums.copy()
    ordered.sort()
    return percentile(ordered.tolist(), share)


def _between_percentiles(first: Side, second: Side, share: float) -> Interval:
    return of_percentiles(first[0], second[0], share)


def _mean_row(name: str, unit: str, measure: str) -> _Row:
    return _Row(name, unit, measure, _mean, _between_means)


def _share_row(name: str, measure: str) -> _Row:
    return _Row(name, "share", measure, _mean, of_shares)


def _percentile_row(stage: str, name: str) -> _Row:
    share = PERCENTILES[name]
    value, interval = partial(_nearest_rank, share=share), partial(_between_percentiles, share=share)
    return _Row(f"latency {name}, {stage}", "ms", stage, value, interval)


_ROWS: Final = (
    *(_percentile_row(stage, name) for stage in (*STAGE_WORDS, "all stages") for name in ("p50", "p95")),
    _share_row("sessions in error", "error"),
    _mean_row("mean grounding", "score", "grounding"),
    _share_row("empty retrievals", "empty"),
    _share_row("top chunk changed by rerank", "reordered"),
    _share_row("citation coverage", "cited"),
    _mean_row("tokens a session", "tokens", "tokens"),
    _mean_row("cost a session", "USD", "cost"),
    _share_row("helpful ratings", "helpful"),
    _mean_row("mean rating", "of 5", "rating"),
    _share_row("sessions escalated", "escalated"),
)
