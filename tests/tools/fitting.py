"""Fitting a logistic model whose weights have prescribed signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spanforge.reference._extras import Untyped, load

_SWEEPS: Final = 300
_TOLERANCE: Final = 1e-9
_LARGEST_STEP: Final = 1.0
"""Bound on one Newton step, which would overshoot where the curvature is nearly nil."""


@dataclass(frozen=True, slots=True)
class Cases:
    """Training cases: feature rows, whether each is supported, and how much each counts."""

    rows: Sequence[Sequence[float]]
    truths: Sequence[bool]
    weights: Sequence[float]


def fit_signed(cases: Cases, signs: Sequence[int], penalty: float) -> tuple[float, list[float]]:
    """Fit a ridge-penalised logistic model by cyclic coordinate descent.

    Weights of the wrong sign are held at zero: a feature that would be used against its meaning on these sets would be
    wrong on others.

    Args:
        cases: The training cases.
        signs: For each feature +1 if it speaks for support, -1 if against, 0 if either.
        penalty: Weight of half the squared norm of the standardised weights beside the mean log loss.

    Returns:
        The intercept and the weights, for features as they are (not standardised).
    """
    np = load("numpy", "reference")
    rows = np.asarray(cases.rows, dtype=float)
    truths = np.asarray(cases.truths, dtype=float)
    weights = np.asarray(cases.weights, dtype=float)
    weights = weights / weights.sum()
    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    standard = (rows - centre) / scale
    intercept, slopes = _descend(np, standard, truths, weights, signs=signs, penalty=penalty)
    raw = slopes / scale
    return float(intercept - (raw * centre).sum()), [float(value) for value in raw]


def _descend(
    np: Untyped, rows: Untyped, truths: Untyped, weights: Untyped, *, signs: Sequence[int], penalty: float
) -> tuple[float, Untyped]:
    slopes = np.zeros(rows.shape[1])
    intercept = 0.0
    odds = np.zeros(rows.shape[0])
    for _ in range(_SWEEPS):
        largest = 0.0
        for column in range(-1, rows.shape[1]):
            chance = 1.0 / (1.0 + np.exp(-odds))
            values = rows[:, column] if column >= 0 else 1.0
            ridge = penalty if column >= 0 else 0.0
            current = slopes[column] if column >= 0 else intercept
            gradient = (weights * (chance - truths) * values).sum() + ridge * current
            curvature = (weights * chance * (1 - chance) * values * values).sum() + ridge
            step = float(np.clip(-gradient / curvature, -_LARGEST_STEP, _LARGEST_STEP))
            moved = current + step
            if column >= 0 and moved * signs[column] < 0:
                moved = 0.0
            odds = odds + (moved - current) * values
            largest = max(largest, abs(moved - current))
            if column >= 0:
                slopes[column] = moved
            else:
                intercept = moved
        if largest < _TOLERANCE:
            break
    return intercept, slopes


def log_odds(intercept: float, slopes: Sequence[float], row: Sequence[float]) -> float:
    """Return a model's log odds for one row of features."""
    return intercept + sum(slope * value for slope, value in zip(slopes, row, strict=True))
