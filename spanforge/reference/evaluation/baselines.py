"""What a grounder has to beat: the protocol's own rule, and weighted word recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanforge.reference.grounding.claims import read_claim
from spanforge.reference.grounding.contexts import PreparedContexts
from spanforge.reference.grounding.model import default_model

IDF_RECALL_THRESHOLD: Final = 0.75
"""Recall from which the second baseline says supported: the best mean balanced accuracy on the training parts."""

_LONG_WORD: Final = 4


def protocol_rule(claim: str, contexts: Sequence[str]) -> bool:
    """Judge a claim as the protocol's sample code does.

    Args:
        claim: The claim.
        contexts: The contexts.

    Returns:
        True if any word of more than four letters occurs in any context (P-KNOW-RAG, step 5).
    """
    lowered = [context.lower() for context in contexts]
    return any(word in context for word in claim.lower().split() if len(word) > _LONG_WORD for context in lowered)


def idf_recall(claim: str, contexts: Sequence[str]) -> float:
    """Return the rarity-weighted share of a claim's words that the contexts have.

    Args:
        claim: The claim.
        contexts: The contexts.

    Returns:
        The least such share over the claim's sentences, in [0, 1]; 0 for a claim without content words.
    """
    rarity = default_model().words.rarity
    known = PreparedContexts.of(contexts).postings
    shares = [
        sum(rarity(word) for word in unit.words if word in known) / sum(rarity(word) for word in unit.words)
        for unit in read_claim(claim).units
        if unit.words
    ]
    return min(shares, default=0.0)
