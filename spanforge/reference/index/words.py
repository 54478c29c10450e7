"""Scores by words, from the passages of the sources searched alone.

An engine's own figures count every passage that it keeps: how rare a word is, and how long a passage usually is, would
tell of documents that whoever asks may not see. So engines only say which of the selected passages hold a word of the
question, and BM25 is made of those here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanforge.reference._extras import load
from spanforge.reference.index.base import ROW_FIELDS, Candidate, IndexRow
from spanforge.reference.lexical import K1, B


def bm25(
    weights: Mapping[str, float], frequencies: NDArray[np.int64], lengths: NDArray[np.int64], total: int
) -> NDArray[np.float64]:
    """Return the score of each passage.

    Args:
        weights: How much each term counts: of a question, how often it has it.
        frequencies: How often each passage holds each of the terms, in their order.
        lengths: Terms of each passage.
        total: Passages of the sources searched, whether they hold a word or not.
    """
    scores = np.zeros(len(lengths))
    if not len(lengths):
        return scores
    # Whole numbers, so that the order of the passages changes nothing, not in the last digit either.
    usual = int(lengths.sum()) / len(lengths)
    norm = K1 * (1 - B + B * lengths / usual)
    for i, weight in enumerate(weights.values()):
        tf = frequencies[:, i]
        df = int(np.count_nonzero(tf))
        rarity = np.log1p((total - df + 0.5) / (df + 0.5))
        scores += weight * rarity * tf * (K1 + 1) / (tf + norm)
    return scores


def counted(query: Sequence[str], passages: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how often each passage holds each distinct term of a question, and of how many terms each passage is.

    Args:
        query: Terms of the question.
        passages: An Arrow column of texts, each the terms of a passage with blanks between them.
    """
    arrow = load("pyarrow", "reference")
    compute = load("pyarrow.compute", "reference")
    distinct = list(dict.fromkeys(query))
    lists = compute.split_pattern(arrow.chunked_array(passages).combine_chunks(), " ")
    lengths = np.asarray(compute.list_value_length(lists), dtype=np.int64)
    which = compute.index_in(lists.flatten(), value_set=arrow.array(distinct))
    known = np.asarray(which.is_valid())
    rows = np.repeat(np.arange(len(lengths)), lengths)[known]
    slots = rows * len(distinct) + np.asarray(which.drop_null(), dtype=np.int64)
    counts = np.bincount(slots, minlength=len(lengths) * len(distinct))
    return counts.reshape(len(lengths), len(distinct)), lengths


def candidate(fields: Mapping[str, Any], vector: NDArray[np.float32] | None, score: float | None) -> Candidate:
    """Return a row as a store gave it, with its score by words and how near its vector is to the question's."""
    own = fields.get("vector")
    kept = None if own is None else np.asarray(own, dtype=np.float32)
    row = IndexRow(**{name: fields.get(name) for name in ROW_FIELDS}, vector=kept)  # pyright: ignore[reportArgumentType]
    cosine = None if vector is None or kept is None else float(np.dot(kept, vector))
    return Candidate(row, tuple(fields["terms"].split()), score, cosine)


def best(scores: NDArray[np.floating[Any]], name_of: Callable[[int], str], limit: int) -> list[int]:
    """Return where the greatest scores are, at most so many; of equal ones those whose names come first."""
    chosen = np.arange(len(scores))
    if len(scores) > limit:
        # All that are as good as the last one wanted: which of them are in is for their names to say.
        chosen = np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
    return sorted(chosen.tolist(), key=lambda i: (-scores[i], name_of(i)))[:limit]
