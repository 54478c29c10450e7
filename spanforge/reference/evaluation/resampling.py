"""How sure a measured mean is: bootstrap intervals and a paired randomisation test, seeded and so repeatable."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar, cast

RESAMPLES: Final = 1_000
SEED: Final = 20_231
_CONFIDENCE: Final = 0.95

CaseT = TypeVar("CaseT")


class Report:
    """Base of what is measured: frozen data that can be written as strict JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without what is too much to show; None stands for what cannot be measured."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(cast("Any", self)) if one.repr}


def _plain(value: Any) -> Any:
    match value:
        case Report():
            return value.to_dict()
        case tuple():
            return [_plain(one) for one in cast("tuple[Any, ...]", value)]
        case Mapping():
            return {name: _plain(one) for name, one in cast("Mapping[str, Any]", value).items()}
        case float() if math.isnan(value):
            return None
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Estimate(Report):
    """A measure with its 95 percent bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairedComparison(Report):
    """The mean difference of two systems over the same cases.

    Attributes:
        difference: Mean of the system's minus the baseline's value.
        low: Lower end of the difference's 95 percent interval.
        high: Upper end.
        p_value: Two-sided probability of so large a difference if the two were exchangeable.
    """

    difference: float
    low: float
    high: float
    p_value: float

    @property
    def significantly_worse(self) -> bool:
        """Whether the system is below the baseline at the 5 percent level."""
        return self.difference < 0 and self.p_value < 1 - _CONFIDENCE


def bootstrap(
    cases: Sequence[CaseT],
    measure: Callable[[Sequence[CaseT]], float],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Measure cases, at least one, with the percentile interval over resamples of them.

    ``measure`` may give NaN where a resample lacks a class, which is left out.
    """
    rng = random.Random(seed)  # noqa: S311 (statistics, not security)
    drawn = sorted(
        value
        for value in (measure(rng.choices(cases, k=len(cases))) for _ in range(resamples))
        if not math.isnan(value)
    )
    return Estimate(measure(cases), *_interval(drawn))


def mean_estimate(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED) -> Estimate:
    """Return the mean of values with its bootstrap interval."""
    return bootstrap(values, lambda drawn: math.fsum(drawn) / len(drawn), resamples=resamples, seed=seed)


def compare_paired(
    system: Sequence[float], baseline: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED
) -> PairedComparison:
    """Compare the values of two systems for the same cases in the same order.

    The p value is that of a paired randomisation test (Fisher; Smucker et al. 2007) by as many random sign changes as
    resamples, and never below 1 / (resamples + 1).

    Raises:
        ValueError: The two differ in length or are empty.
    """
    if len(system) != len(baseline) or not system:
        raise ValueError("system and baseline need the same cases, at least one")
    differences = [mine - theirs for mine, theirs in zip(system, baseline, strict=True)]
    estimate = mean_estimate(differences, resamples=resamples, seed=seed)
    rng = random.Random(seed + 1)  # noqa: S311 (statistics, not security)
    observed = abs(math.fsum(differences))
    nonzero = [difference for difference in differences if difference]
    extreme = sum(
        abs(math.fsum(value if rng.getrandbits(1) else -value for value in nonzero)) >= observed - 1e-12
        for _ in range(resamples)
    )
    return PairedComparison(estimate.value, estimate.low, estimate.high, (extreme + 1) / (resamples + 1))


def _interval(ordered: Sequence[float]) -> tuple[float, float]:
    if not ordered:
        return math.nan, math.nan
    tail = (1 - _CONFIDENCE) / 2
    last = len(ordered) - 1
    return ordered[round(tail * last)], ordered[round((1 - tail) * last)]
