"""Measures of rankings and of yes-no judgements.

Rankings are lists of document ids, best first; grades map document ids to relevance, 0 meaning not relevant. Ids that
a ranking repeats count once, at their best place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, islice


def _first(ranking: Sequence[str], depth: int) -> list[str]:
    return list(islice(dict.fromkeys(ranking), depth))


def ndcg_at(ranking: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """Return the normalised discounted cumulative gain with linear gain, as trec_eval computes it.

    In [0, 1]; 0 where nothing is relevant. The first ``depth`` places count.
    """
    gains = [grades.get(document, 0) for document in _first(ranking, depth)]
    ideal = sorted(grades.values(), reverse=True)[:depth]
    best = _discounted(ideal)
    return _discounted(gains) / best if best else 0.0


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def precision_at(ranking: Sequence[str], grades: Mapping[str, int], depth: int = 5) -> float:
    """Return the share of the first ``depth`` places held by relevant documents, in [0, 1]."""
    return sum(grades.get(document, 0) > 0 for document in _first(ranking, depth)) / depth


def recall_at(ranking: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """Return the share of the relevant documents found in the first ``depth`` places, in [0, 1]."""
    relevant = {document for document, grade in grades.items() if grade > 0}
    return len(relevant.intersection(_first(ranking, depth))) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], grades: Mapping[str, int], depth: int = 10) -> float:
    """Return one by the place of the first relevant document, 0 if none is in the first ``depth`` places."""
    for place, document in enumerate(_first(ranking, depth), start=1):
        if grades.get(document, 0) > 0:
            return 1.0 / place
    return 0.0


def accuracy(truths: Sequence[bool], judged: Sequence[bool]) -> float:
    """Return the share of right judgements, in [0, 1]."""
    return sum(truth == judgement for truth, judgement in zip(truths, judged, strict=True)) / len(truths)


def balanced_accuracy(truths: Sequence[bool], judged: Sequence[bool]) -> float:
    """Return the mean of the two classes' recalls, in [0, 1]; one half is what guessing gives.

    Where only one class occurs, its recall is returned.
    """
    recalls: list[float] = []
    for kind in (True, False):
        answers = [judgement for truth, judgement in zip(truths, judged, strict=True) if truth == kind]
        if answers:
            recalls.append(sum(answer == kind for answer in answers) / len(answers))
    return sum(recalls) / len(recalls)


def roc_auc(truths: Sequence[bool], scores: Sequence[float]) -> float:
    """Return the probability that a supported case scores above an unsupported one, ties counting half.

    Returns:
        A value in [0, 1]; not a number where only one class occurs.
    """
    positives = sum(truths)
    negatives = len(truths) - positives
    if not positives or not negatives:
        return math.nan
    ordered = sorted(zip(scores, truths, strict=True))
    below = 0
    wins = 0.0
    for _, tied in groupby(ordered, key=lambda pair: pair[0]):
        here = [truth for _, truth in tied]
        here_positive = sum(here)
        here_negative = len(here) - here_positive
        wins += here_positive * (below + here_negative / 2)
        below += here_negative
    return wins / (positives * negatives)


def calibration_error(truths: Sequence[bool], probabilities: Sequence[float], bins: int = 10) -> float:
    """Return the expected calibration error over equally wide bins, in [0, 1].

    It is the mean distance between stated probability and observed share, weighted by bin size.
    """
    filled: dict[int, list[tuple[float, bool]]] = {}
    for truth, probability in zip(truths, probabilities, strict=True):
        filled.setdefault(min(int(probability * bins), bins - 1), []).append((probability, truth))
    gaps = (abs(sum(p for p, _ in cases) - sum(truth for _, truth in cases)) for _, cases in sorted(filled.items()))
    return math.fsum(gaps) / len(truths)


def risk_coverage_area(truths: Sequence[bool], scores: Sequence[float]) -> float:
    """Return the mean share of false cases among the k best by score, over every k: 0 is best.

    Returns:
        A value in [0, 1]; cases of the same score count as in their mean order.
    """
    false, shares, total = 0.0, 0.0, 0
    for _, group in groupby(sorted(zip(scores, truths, strict=True), reverse=True), key=lambda pair: pair[0]):
        tied = [truth for _, truth in group]
        wrong = sum(not truth for truth in tied) / len(tied)
        for _ in tied:
            total, false = total + 1, false + wrong
            shares += false / total
    return shares / total
