"""What the first results tell of a question: which words belong to its subject, and what all of them have in common.

Only the candidates of the search are read, which whoever asks may see: no figure here depends on any other passage.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spanforge.reference.index.base import Candidate
from spanforge.reference.index.words import bm25
from spanforge.reference.lexical import UNSEEN_PASSAGES

_RESULTS: Final = 3
"""First results that are read ..."""
_WORDS: Final = 20
"""... and words of theirs that are kept."""


def by_feedback(candidates: Sequence[Candidate], scores: Sequence[float]) -> NDArray[np.float64]:
    """Score by the words of the first results, each by its share of them (RM3: Abdul-Jaleel and others 2004).

    Args:
        candidates: At least one.
        scores: The order so far, in [0, 1].
    """
    first = sorted(range(len(candidates)), key=lambda i: (-scores[i], i))[:_RESULTS]
    shares: defaultdict[str, float] = defaultdict(float)
    for i in first:
        own = candidates[i].terms
        for term, count in Counter(own).items():
            shares[term] += scores[i] * count / len(own)
    kept = dict(sorted(shares.items(), key=lambda share: (-share[1], share[0]))[:_WORDS])
    places = {term: place for place, term in enumerate(kept)}
    held = [[places[term] for term in filter(places.__contains__, one.terms)] for one in candidates]
    counts = np.array([np.bincount(np.array(own, dtype=np.int64), minlength=len(kept)) for own in held])
    lengths = np.array([max(1, len(one.terms)) for one in candidates], dtype=np.int64)
    return bm25(kept, counts, lengths, len(candidates) + UNSEEN_PASSAGES)


def centred(candidates: Sequence[Candidate]) -> list[float | None]:
    """Return the cosines with the mean of all vectors taken out of each, the question's too.

    What all candidates share tells none from another, and is most of what static vectors say.
    """
    cosines = [one.cosine for one in candidates]
    vectors = [one.row.vector for one in candidates if one.row.vector is not None]
    known = [cosine for cosine in cosines if cosine is not None]
    if len(vectors) < len(candidates) or len(known) < len(candidates):
        return cosines
    matrix = np.stack(vectors).astype(np.float64)
    mean = matrix.mean(axis=0)
    near = np.array(known)
    # Of unit vectors, q and v: (q - m)(v - m) = qv - qm - vm + mm, and qm is the mean of all qv.
    products = near - near.mean() - matrix @ mean + mean @ mean
    lengths = np.linalg.norm(matrix - mean, axis=1) * np.sqrt(max(0.0, 1.0 - 2.0 * near.mean() + mean @ mean))
    return [float(one) for one in products / np.where(lengths > 0.0, lengths, 1.0)]
