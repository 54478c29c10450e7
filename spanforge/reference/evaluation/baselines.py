"""What a grounder has to beat: the protocol's own rule, and weighted word recall."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from spanforge.reference.grounding.claims import read_claim
from spanforge.reference.grounding.contexts import PreparedContexts, sentences_of

IDF_RECALL_THRESHOLD: Final = 0.64
"""Recall from which the second baseline says supported: the best mean balanced accuracy on the training parts."""

_LONG_WORD: Final = 4
_LEAST: Final = 0.05
"""Rarity of a word that every text has: a claim of such words alone still has a weight to share out."""


def protocol_rule(claim: str, contexts: Sequence[str]) -> bool:
    """Tell whether any word of more than four letters occurs in any context, as in P-KNOW-RAG's sample of step 5."""
    lowered = [context.lower() for context in contexts]
    return any(word in context for word in claim.lower().split() if len(word) > _LONG_WORD for context in lowered)


def rarities(texts: Iterable[str]) -> dict[str, float]:
    """Return how rare each content stem of some texts is, by the logarithm of document counts.

    In [0.05, 1): near 1 in one of many texts, least in every text. A text that comes again is counted once.
    """
    distinct = dict.fromkeys(texts)
    counts: Counter[str] = Counter()
    for text in distinct:
        counts.update({word for sentence in sentences_of(text) for word in sentence.words})
    whole = math.log(len(distinct) + 1)
    return {word: max(_LEAST, 1.0 - math.log(count + 1) / whole) for word, count in counts.items()}


def idf_recall(claim: str, contexts: Sequence[str], rarity: Mapping[str, float]) -> float:
    """Return the rarity-weighted share of a claim's words that the contexts have, the least over its sentences.

    In [0, 1]; 0 for a claim without content words. ``rarity`` is as ``rarities`` gives it for all contexts that are
    measured on; an unlisted stem has 1.
    """
    known = PreparedContexts.of(contexts).postings
    shares: list[float] = []
    for unit in read_claim(claim).units:
        weights = {word: rarity.get(word, 1.0) for word in unit.words}
        if weights:
            shares.append(sum(weight for word, weight in weights.items() if word in known) / sum(weights.values()))
    return min(shares, default=0.0)
