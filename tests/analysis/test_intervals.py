"""Intervals for a difference cover the truth as often as they say, and find none where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from spanforge.analysis import intervals
from spanforge.analysis.intervals import of_means, of_percentiles, of_shares

_MEDIAN_OF_LATENCIES = math.exp(5)
_P95_OF_LATENCIES = math.exp(5 + 0.8 * 1.6448536)
_SIZES = [(5, 5), (10, 40), (30, 30), (100, 20)]


def _latencies(rng: np.random.Generator, count: int) -> Any:
    return rng.lognormal(5, 0.8, count)


def _scores(rng: np.random.Generator, count: int) -> Any:
    return rng.beta(6, 1.6, count)


def _rare(rng: np.random.Generator, count: int) -> Any:
    return np.where(rng.random(count) < 0.2, rng.exponential(1.0, count), 0.0)


def _two_kinds(rng: np.random.Generator, count: int) -> Any:
    return np.where(rng.random(count) < 0.3, rng.normal(2000, 100, count), rng.normal(300, 50, count))


def _stars(rng: np.random.Generator, count: int) -> Any:
    return rng.choice([1.0, 2, 3, 4, 5], count, p=[0.1, 0.05, 0.1, 0.25, 0.5])


_CASES = {
    "mean of latencies": (_latencies, of_means, math.exp(5 + 0.32)),
    "mean of scores": (_scores, of_means, 6 / 7.6),
    "mean of what is rare": (_rare, of_means, 0.2),
    "p50 of latencies": (_latencies, partial(of_percentiles, share=0.5), _MEDIAN_OF_LATENCIES),
    "p95 of latencies": (_latencies, partial(of_percentiles, share=0.95), _P95_OF_LATENCIES),
    # The method was found with those above, and held for these.
    "mean of two kinds": (_two_kinds, of_means, 0.3 * 2000 + 0.7 * 300),
    "mean of stars": (_stars, of_means, 4.0),
    "p95 of weibull": (
        lambda rng, count: 100 * rng.weibull(1.3, count),
        partial(of_percentiles, share=0.95),
        100 * (-math.log(0.05)) ** (1 / 1.3),
    ),
}


def _holding(case: str, sizes: tuple[int, int], rounds: int, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float]:
    """Return how often the interval holds 0 where nothing differs, and the truth where the second is larger by half."""
    draw, interval, truth = _CASES[case]
    rng = np.random.default_rng(7)
    alike = apart = 0
    for number in range(rounds):
        monkeypatch.setattr(intervals, "_SEED", number)
        first, second, larger = draw(rng, sizes[0]), draw(rng, sizes[1]), 1.5 * draw(rng, sizes[1])
        low, high = interval(first, second)
        alike += low <= 0 <= high
        low, high = interval(first, larger)
        apart += low <= truth / 2 <= high
    return alike / rounds, apart / rounds


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", _CASES)
def test_samples_are_covered_and_told_apart_as_promised(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [_holding(case, sizes, 200, monkeypatch) for sizes in _SIZES]
    # Over all sizes; of one size three standard errors of the simulation are left to chance.
    assert np.mean([alike for alike, _ in found]) >= 0.95
    assert np.mean([apart for _, apart in found]) >= 0.93
    chance = 3 * math.sqrt(0.05 * 0.95 / 200)
    assert min(alike for alike, _ in found) >= 0.95 - chance
    assert min(apart for _, apart in found) >= 0.93 - chance


@pytest.mark.parametrize("case", _CASES)
def test_a_few_samples_are_covered_as_promised(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alike, apart = _holding(case, (8, 20), 40, monkeypatch)
    assert min(alike, apart) >= 0.87


@pytest.mark.parametrize("case", _CASES)
def test_the_order_of_samples_does_not_matter(case: str) -> None:
    draw, interval, _ = _CASES[case]
    rng = np.random.default_rng(3)
    first, second = draw(rng, 30), draw(rng, 40)
    assert interval(first, second) == interval(rng.permutation(first), rng.permutation(second))


def _binomial(count: int, share: float) -> Any:
    return np.array([math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(count + 1)])


def _counted(holding: int, count: int) -> tuple[Any, Any]:
    return (np.arange(count) < holding).astype(float), np.ones(count)


@pytest.mark.parametrize("sizes", [(5, 5), (10, 40), (30, 30), (100, 20)])
def test_shares_are_covered_whatever_they_are(sizes: tuple[int, int]) -> None:
    """Exactly: over every pair of counts, with the probability it has."""
    bounds = {
        pair: of_shares(_counted(pair[0], sizes[0]), _counted(pair[1], sizes[1]))
        for pair in product(range(sizes[0] + 1), range(sizes[1] + 1))
    }
    low, high = (np.array([one[side] for one in bounds.values()]) for side in (0, 1))
    shares = np.linspace(0.02, 0.98, 25)
    covered = np.empty((25, 25))
    for (row, share), (column, other) in product(enumerate(shares), enumerate(shares)):
        likely = np.outer(_binomial(sizes[0], share), _binomial(sizes[1], other)).ravel()
        covered[row, column] = likely[(low <= other - share) & (other - share <= high)].sum()
    assert covered.min() >= (0.92 if min(sizes) < 10 else 0.93)
    assert covered.mean() >= 0.95
    assert covered.diagonal().mean() >= 0.95, "no difference is seldom taken for one"


def test_samples_of_few_sessions_count_for_few() -> None:
    """Ten sessions whose twenty samples each agree tell what ten samples tell."""
    holding = (np.arange(10) < 4).astype(float)
    each = of_shares((holding * 20, np.full(10, 20.0)), (holding * 20, np.full(10, 20.0)))
    once = of_shares((holding, np.ones(10)), (holding, np.ones(10)))
    assert each.high == pytest.approx(once.high, rel=0.1)


@pytest.mark.parametrize("interval", [of_means, partial(of_percentiles, share=0.5)])
def test_two_samples_a_side_bound_nothing(interval: Callable[[Any, Any], tuple[float, float]]) -> None:
    assert interval(np.array([1.0, 1.0]), np.array([9.0, 9.0])) == (-math.inf, math.inf)


def test_a_percentile_needs_samples_beyond_it() -> None:
    few, many = np.arange(40.0), np.arange(100.0)
    assert of_percentiles(few, few + 1000, 0.95) == (-math.inf, math.inf)
    low, high = of_percentiles(many, many + 1000, 0.95)
    assert 0 < low < 1000 < high < math.inf


def test_figures_that_never_vary_differ_or_say_nothing() -> None:
    assert of_means(np.full(20, 0.5), np.full(20, 0.7)) == pytest.approx((0.2, 0.2))
    assert of_means(np.full(20, 0.1), np.full(30, 0.1)) == (-math.inf, math.inf), "nor does it vary where it may"


def test_the_same_samples_give_the_same_interval() -> None:
    rng = np.random.default_rng(3)
    first, second = _latencies(rng, 50), _latencies(rng, 70)
    assert of_means(first, second) == of_means(first, second)
    assert of_percentiles(first, second, 0.5) == of_percentiles(first, second, 0.5)


def test_many_samples_give_the_interval_of_few_more_narrow() -> None:
    rng = np.random.default_rng(3)
    first, second = _scores(rng, 20_000), _scores(rng, 1_500)
    low, high = of_means(first, second)
    assert low <= 0 <= high
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(first.var() / 20_000 + second.var() / 1_500), rel=0.01)
    assert of_means(first, second[:1000]).high > high
