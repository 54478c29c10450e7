"""95 % intervals for a difference between two sets of sessions, that hold for few of them and for skewed figures.

Each returns low and high of what the second set has more than the first; infinite where so few sessions bound nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from spanforge.exceptions import MissingExtraError

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError:
    raise MissingExtraError("Comparing sessions", "analysis") from None

__all__ = ["Interval", "Values", "of_means", "of_percentiles", "of_shares", "table"]

Values: TypeAlias = NDArray[np.float64]
"""A column of samples."""

_SEED: Final = 20_261_129
_RESAMPLES: Final = 1_999
_OUTSIDE: Final = 49
"""Place of the resample that 2.5 % of them lie before, and as many behind its counterpart."""
_Z95: Final = 1.959964
_Z96: Final = 2.053749
_MANY: Final = 1_000
"""Above it the mean of a resample is as good as normal, and is drawn as that."""
_ROUNDING: Final = 1e-12


class Interval(NamedTuple):
    """Between what a difference lies."""

    low: float
    high: float


_UNBOUNDED: Final = Interval(-math.inf, math.inf)


def table(batches: Iterable[Sequence[Sequence[float | None]]], width: int) -> Values:
    """Return batches of rows as a table of so many columns; what is None is not a number there."""
    return np.concatenate([np.empty((0, width)), *(np.array(batch, dtype=np.float64) for batch in batches)])


def of_means(first: Values, second: Values) -> Interval:
    """Return the bootstrap-t interval for the difference of two means, each of two samples or more.

    Each end is the furthest of those of the equal-tailed interval, which takes the skew into account (Hall, P. (1988),
    "Theoretical comparison of bootstrap confidence intervals", Annals of Statistics 16, 927-953), and of the symmetric
    one, which few samples mislead less (Hall, P. (1988), "On symmetric bootstrap confidence intervals", JRSS B 50,
    35-45); both from resamples of each set, and of both thrown together (Efron, B. and Tibshirani, R. J. (1993), An
    Introduction to the Bootstrap, algorithm 16.2), so that skewed sets of unequal size do not look different. What
    never varies is bounded by nothing.
    """
    rng = np.random.default_rng(_SEED)
    first, second = np.sort(first), np.sort(second)  # the same samples are drawn, in whichever order they were stored
    shift = float(second.mean() - first.mean())
    scale = math.sqrt(_spread(first) + _spread(second))
    if abs(shift) + scale <= _ROUNDING * abs(float(first.mean())):
        return _UNBOUNDED  # all are alike, which says nothing of those that were not drawn
    if min(len(first), len(second)) > _MANY:
        return Interval(shift - _Z95 * scale, shift + _Z95 * scale)
    pooled = np.concatenate([first, second])
    (low, high), (pooled_low, pooled_high) = (
        _tails(_resampled(one, len(first), rng), _resampled(other, len(second), rng), apart)
        for one, other, apart in ((first, second, shift), (pooled, pooled, 0.0))
    )
    return Interval(shift - _times(max(high, pooled_high), scale), shift - _times(min(low, pooled_low), scale))


def _times(errors: float, scale: float) -> float:
    return errors * scale if math.isfinite(errors) else errors


def _spread(values: Values) -> float:
    """Return the squared standard error of a mean."""
    return float(values.var(ddof=1)) / len(values)


def _resampled(values: Values, count: int, rng: np.random.Generator) -> tuple[Values, Values]:
    """Return the mean of each resample and its squared standard error."""
    if count > _MANY:
        spread = float(values.var(ddof=1)) / count
        return rng.normal(values.mean(), math.sqrt(spread), _RESAMPLES), np.full(_RESAMPLES, spread)
    drawn = values[rng.integers(0, len(values), (_RESAMPLES, count))]
    return drawn.mean(axis=1), drawn.var(axis=1, ddof=1) / count


def _tails(first: tuple[Values, Values], second: tuple[Values, Values], shift: float) -> tuple[float, float]:
    """Return between what 95 % of the resamples lie off the shift, in standard errors of their own."""
    off = second[0] - first[0] - shift
    digits = _ROUNDING * (abs(shift) + np.abs(first[0]) + np.abs(second[0]))
    off[np.abs(off) < digits] = 0.0
    error = np.sqrt(first[1] + second[1])
    # Samples that are all alike have an error of their last digits at most, and bound nothing.
    told = np.sort(np.divide(off, error, out=np.where(off == 0, 0.0, np.copysign(np.inf, off)), where=error > digits))
    either_way = np.sort(np.abs(told))[-1 - 2 * _OUTSIDE]
    return float(min(told[_OUTSIDE], -either_way)), float(max(told[-1 - _OUTSIDE], either_way))


def of_shares(first: tuple[Values, Values], second: tuple[Values, Values]) -> Interval:
    """Return the interval of Agresti and Caffo for the difference of two shares.

    Agresti, A. and Caffo, B. (2000), "Simple and effective confidence intervals for proportions and differences of
    proportions result from adding two successes and two failures", The American Statistician 54, 280-288; at 96 %,
    since counts go in steps, so that from ten samples a side no true shares are covered in less than 93 %. Samples of
    one session are alike: they count for as many as their spread between sessions is worth (Rao, J. N. K. and Scott,
    A. J. (1992), "A simple method for the analysis of clustered binary data", Biometrics 48, 577-585).

    Args:
        first: Of each session how many samples there are that hold, and how many samples.
        second: The same of the other set.
    """
    (one, few), (other, many) = _adjusted(*first), _adjusted(*second)
    error = math.sqrt(one * (1 - one) / few + other * (1 - other) / many)
    return Interval(max(-1.0, other - one - _Z96 * error), min(1.0, other - one + _Z96 * error))


def _adjusted(holding: Values, samples: Values) -> tuple[float, float]:
    """Return the share after two more samples, of which one holds, and how many samples that is of."""
    sessions, total = len(samples), float(samples.sum())
    share = float(holding.sum()) / total
    alone, effect = share * (1 - share) / total, 1.0
    if alone and sessions > 1 and total > sessions:
        between = float(((holding - share * samples) ** 2).sum()) * sessions / (sessions - 1) / total**2
        effect = max(1.0, between / alone)
    worth = total / effect
    return (share * worth + 1) / (worth + 2), worth + 2


def of_percentiles(first: Values, second: Values, share: float) -> Interval:
    """Return the bootstrap interval for the difference of two percentiles.

    How many of n samples lie below the true percentile is binomial, whatever they are drawn from (David, H. A. and
    Nagaraja, H. N. (2003), Order Statistics, section 7.1): it is drawn again and again, and the percentile lies between
    the samples of that rank and of the next. The interval is rather too wide than too narrow, with ties too, and
    unbounded where so few samples need not reach beyond the percentile.

    Args:
        first: Samples.
        second: The same of the other set.
        share: Of the samples that do not exceed the percentile, in (0, 1).
    """
    rng = np.random.default_rng(_SEED)
    (low, high), (other_low, other_high) = _ranked(first, share, rng), _ranked(second, share, rng)
    least, most = np.sort(other_low - high), np.sort(other_high - low)
    return Interval(float(least[_OUTSIDE]), float(most[-1 - _OUTSIDE]))


def _ranked(values: Values, share: float, rng: np.random.Generator) -> tuple[Values, Values]:
    """Return for each resample the samples that the true percentile lies between."""
    below = rng.binomial(len(values), share, _RESAMPLES)
    bounds = np.concatenate([[-np.inf], np.sort(values), [np.inf]])
    return bounds[below], bounds[below + 1]
