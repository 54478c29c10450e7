"""Scores of every kind, mapped to [0, 1] by one rule for a whole result, so that its order stays (adr/0004)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

__all__ = ["RULES", "normalise"]

_ROUNDING: Final = 1e-5
"""More than sums of a few thousand products in single precision are wrong by, and less than a score can mean."""


def _logistic(value: float) -> float:
    # Two branches, so that neither end overflows.
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


RULES: Final[dict[str, Callable[[float], float]]] = {
    "clamped": lambda value: value,
    "cosine": lambda value: (value + 1) / 2,
    "saturating": lambda value: value / (1 + value),
    "logistic": _logistic,
    "distance": lambda value: 1 / (1 + max(0.0, value)),
}
"""The rules by name; results whose scores all lie in [0, 1] need none. What they give is cut at 0 and 1.

- `clamped` (s): something leaves [0, 1], nothing by more than a rounding error, as the cosine of a text and itself may.
- `cosine` ((s + 1) / 2): something is negative, nothing leaves [-1, 1].
- `saturating` (s / (1 + s)): nothing is negative, something is above 1, as with BM25.
- `logistic` (1 / (1 + e^-s)): anything else, as with dot products and cross-encoder logits.
- `distance` (1 / (1 + d)): the store gave distances and said so.
"""


def normalise(raw: Sequence[float], *, distances: bool = False) -> tuple[str | None, list[float]]:
    """Map one result's scores to [0, 1].

    Args:
        raw: Finite scores as the store gave them.
        distances: True where a smaller value is better.

    Returns:
        The rule's name, None where the scores are kept as they are, and the scores.
    """
    if not raw:
        return None, []
    low, high = min(raw), max(raw)
    if distances:
        rule = "distance"
    elif low >= 0.0 and high <= 1.0:
        return None, list(raw)
    elif low >= -_ROUNDING and high <= 1.0 + _ROUNDING:
        rule = "clamped"
    elif low < 0.0:
        rule = "cosine" if low >= -1.0 - _ROUNDING and high <= 1.0 + _ROUNDING else "logistic"
    else:
        rule = "saturating"
    apply = RULES[rule]
    return rule, [min(1.0, max(0.0, apply(value))) for value in raw]
