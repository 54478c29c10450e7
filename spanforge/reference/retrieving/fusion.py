"""Making one order of two: by words and by vectors.

`weighted` is the default: both figures are stretched to [0, 1] over the union of the two candidate lists of
this one question, then averaged; what the first results tell (`feedback`) makes both sharper.
`reciprocal_rank` looks at ranks alone (Cormack, Clarke and Büttcher 2009); with a weak embedder it ranks
worse, so it is offered, not the default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from spanforge.reference.index.base import Candidate
from spanforge.reference.retrieving.feedback import by_feedback, centred

FusionMethod = Literal["weighted", "rrf"]
_LEAST_SPAN = 0.25
"""Least distance between best and worst, as a share of the best, that is stretched to the whole range."""
_FEEDBACK = 0.3
"""Share of the first results' words in the score by words."""
_FEWEST = 20
"""Candidates from which on what they share says more of the question than of them: two alike are all they share."""
RRF_CONSTANT = 60
"""Smoothing constant of reciprocal-rank fusion, as in the paper."""


def fuse(candidates: Sequence[Candidate], *, method: FusionMethod, dense_weight: float) -> list[float]:
    """Return one score in [0, 1] a candidate, in the order given.

    Args:
        candidates: The union of both lists.
        method: ``weighted`` or ``rrf``.
        dense_weight: Share in [0, 1] of the vectors' figure in the weighted score.
    """
    words = [candidate.bm25 for candidate in candidates]
    vectors = [candidate.cosine for candidate in candidates]
    if method == "rrf":
        return reciprocal_rank(words, vectors)
    share = 0.0 if all(score is None for score in vectors) else dense_weight
    share = 1.0 if all(score is None for score in words) else share
    by_words = stretch(words)
    first = _mean(by_words, stretch(vectors), share)
    if not any(first) or len(candidates) < _FEWEST:
        return first
    told = _mean(by_words, stretch(by_feedback(candidates, first).tolist()), _FEEDBACK)
    return _mean(told, stretch(centred(candidates)), share)


def _mean(left: Sequence[float], right: Sequence[float], weight: float) -> list[float]:
    return [(1.0 - weight) * one + weight * other for one, other in zip(left, right, strict=True)]


def reciprocal_rank(words: Sequence[float | None], vectors: Sequence[float | None]) -> list[float]:
    """Return the sum of ``1 / (60 + rank)`` over both lists, scaled so that first in both gives 1."""
    best = 2.0 / (RRF_CONSTANT + 1)
    totals = [0.0] * len(words)
    for scores in (words, vectors):
        ranked = sorted((i for i, score in enumerate(scores) if score is not None), key=lambda i: -(scores[i] or 0.0))
        for rank, i in enumerate(ranked, start=1):
            totals[i] += 1.0 / (RRF_CONSTANT + rank)
    return [total / best for total in totals]


def stretch(scores: Sequence[float | None]) -> list[float]:
    """Scale so that the greatest is 1 and the least is 0; absent is 0.

    Where all lie close together the least is not pushed down to 0: a hair's breadth is not made a gulf.
    """
    present = [score for score in scores if score is not None]
    if not present:
        return [0.0] * len(scores)
    # A candidate the word search did not return has a score of at most the least one returned: it counts as zero.
    low = min(present) if len(present) == len(scores) else min(0.0, *present)
    high = max(present)
    span = max(high - low, _LEAST_SPAN * abs(high))
    if span <= 0.0:
        return [0.0 if score is None else 1.0 for score in scores]
    return [0.0 if score is None else 1.0 - (high - score) / span for score in scores]
