"""Scores of every kind, mapped to [0, 1] by one rule for a whole result, so that its order stays (adr/0004)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import Final

__all__ = ["METRICS", "RULES", "Leaning", "leaning_of", "normalise"]


class Leaning(Enum):
    """What a number that a store gives with a hit means, as far as its place says."""

    OWN = auto()
    """A score in the sense of this package, higher is better, in whatever order."""
    SIMILARITY = auto()
    """Higher is better."""
    DISTANCE = auto()
    """Lower is better."""
    CALLED_DISTANCE = auto()
    """Lower is better, unless the metric is one that some stores give as a similarity under this name."""
    UNKNOWN = auto()


METRICS: Final[dict[str, Leaning]] = {
    **dict.fromkeys(
        ("similarity", "cosine_similarity", "score", "relevance", "bm25", "certainty", "rrf"), Leaning.SIMILARITY
    ),
    **dict.fromkeys(
        (
            "distance", "cosine_distance", "l2", "l2-squared", "euclid", "euclidean", "l1", "manhattan", "hamming",
            "jaccard", "<=>", "<->", "<#>", "<+>",
        ),
        Leaning.DISTANCE,
    ),
    **dict.fromkeys(("cosine", "ip", "inner_product", "dot", "dotproduct"), Leaning.UNKNOWN),
}  # fmt: skip
"""Metrics by name, in small letters. Of cosine and inner product some stores give the similarity, some a distance."""

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
    "negated": lambda value: _logistic(-value),
}
"""The rules by name; results whose scores all lie in [0, 1] need none. What they give is cut at 0 and 1.

- `clamped` (s): something leaves [0, 1], nothing by more than a rounding error, as the cosine of a text and itself may.
- `cosine` ((s + 1) / 2): something is negative, nothing leaves [-1, 1].
- `saturating` (s / (1 + s)): nothing is negative, something is above 1, as with BM25.
- `logistic` (1 / (1 + e^-s)): anything else, as with dot products and cross-encoder logits.
- `distance` (1 / (1 + d)): the store gave distances, none of them negative.
- `negated` (1 / (1 + e^d)): it gave distances, some of them negative, as with negative inner products.
"""


def leaning_of(raw: Sequence[float], leaning: Leaning, metric: str = "") -> Leaning:
    """Decide what one result's scores mean: SIMILARITY or DISTANCE, or UNKNOWN where nothing tells.

    Args:
        raw: Finite scores in the order of the hits.
        leaning: What the place of the scores says.
        metric: A name in `METRICS`, which decides; empty where nobody said.
    """
    told = METRICS.get(metric)
    if told is not None and told is not Leaning.UNKNOWN:
        return told
    if leaning is Leaning.OWN:
        return Leaning.SIMILARITY
    # Stores return the best first, whatever they call the number.
    rises = any(before < after for before, after in pairwise(raw))
    falls = any(before > after for before, after in pairwise(raw))
    if rises or falls:
        return Leaning.UNKNOWN if rises and falls else Leaning.DISTANCE if rises else Leaning.SIMILARITY
    if told is not None:
        return Leaning.DISTANCE if leaning is Leaning.DISTANCE else Leaning.SIMILARITY
    return Leaning.DISTANCE if leaning is Leaning.CALLED_DISTANCE else leaning


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
        rule = "distance" if low >= -_ROUNDING else "negated"
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
