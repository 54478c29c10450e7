from __future__ import annotations

import json
import math
import random

import pytest

from spanforge.reference.evaluation.resampling import Estimate, bootstrap, compare_paired, mean_estimate


def test_the_interval_holds_the_mean_and_narrows_with_more_cases():
    rng = random.Random(1)  # noqa: S311 - a repeatable sample, no secret
    few = mean_estimate([rng.random() for _ in range(20)])
    many = mean_estimate([rng.random() for _ in range(2_000)])
    for estimate in (few, many):
        assert estimate.low <= estimate.value <= estimate.high
    assert many.high - many.low < (few.high - few.low) / 3


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says():
    rng = random.Random(2)  # noqa: S311 - a repeatable sample, no secret
    covered = 0
    for trial in range(200):
        estimate = mean_estimate([rng.gauss(0, 1) for _ in range(60)], resamples=200, seed=trial)
        covered += estimate.low <= 0 <= estimate.high
    assert 175 <= covered <= 199


def test_the_same_seed_gives_the_same_interval():
    values = [math.sqrt(place) for place in range(40)]
    assert mean_estimate(values) == mean_estimate(values)
    assert mean_estimate(values, seed=1) != mean_estimate(values, seed=2)


def test_resamples_that_cannot_be_measured_are_left_out():
    estimate = bootstrap([1, 2], lambda drawn: math.nan if len(set(drawn)) == 1 else 7.0)
    assert estimate == Estimate(7.0, 7.0, 7.0)


def test_what_cannot_be_measured_at_all_is_null_in_json():
    estimate = bootstrap([1], lambda _: math.nan)
    assert json.dumps(estimate.to_dict(), allow_nan=False) == '{"value": null, "low": null, "high": null}'


def test_a_clear_difference_is_significant_and_noise_is_not():
    rng = random.Random(3)  # noqa: S311 - a repeatable sample, no secret
    baseline = [rng.random() for _ in range(100)]
    better = [value + 0.1 + rng.gauss(0, 0.05) for value in baseline]
    noise = [value + rng.gauss(0, 0.05) for value in baseline]
    assert compare_paired(better, baseline).p_value < 0.01
    assert compare_paired(baseline, better).significantly_worse
    assert not compare_paired(noise, baseline).significantly_worse
    assert compare_paired(noise, baseline).p_value > 0.05


def test_equal_systems_do_not_differ():
    comparison = compare_paired([0.5, 0.2], [0.5, 0.2])
    assert (comparison.difference, comparison.p_value) == (0.0, 1.0)


@pytest.mark.parametrize(("system", "baseline"), [([], []), ([1.0], [1.0, 2.0])])
def test_unpaired_cases_are_refused(system: list[float], baseline: list[float]):
    with pytest.raises(ValueError, match="same cases"):
        compare_paired(system, baseline)
