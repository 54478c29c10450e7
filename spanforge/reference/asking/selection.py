"""Choosing the context by relevance, recency, quality and diversity, within a budget (protocol step 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from spanforge.reference.lexical import terms
from spanforge.reference.models import RetrievedDocument

UNDATED_RECENCY = 0.8
OLD_RECENCY = 0.5
UNRATED_QUALITY = 0.8


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """Weights of the combined score and the limits of the choice.

    Attributes:
        relevance: Weight of the retrieval score.
        recency: Weight of the time decay.
        quality: Weight of the editorial quality.
        half_life_days: Age at which recency stands half-way between 1.0 (new) and 0.5 (old).
        diversity: Share in [0, 1] that likeness to what is already chosen costs (maximal marginal relevance,
            Carbonell and Goldstein 1998, with lambda = 1 - diversity).
        max_tokens: Budget of all chosen passages together.
        max_documents: Greatest number of passages.
        min_relative: A passage whose absolute relevance is under this share of the best one's is left out.
    """

    relevance: float = 0.6
    recency: float = 0.2
    quality: float = 0.2
    half_life_days: float = 365.0
    diversity: float = 0.3
    max_tokens: int = 2000
    max_documents: int = 10
    min_relative: float = 0.15


def combined_score(document: RetrievedDocument, settings: SelectionSettings, now: datetime) -> float:
    """Return the weighted sum of relevance, recency and quality, in [0, 1] for weights that add to 1."""
    quality = UNRATED_QUALITY if document.quality is None else document.quality
    return (
        settings.relevance * document.score
        + settings.recency * recency(document.timestamp, now, settings.half_life_days)
        + settings.quality * quality
    )


def recency(timestamp: datetime | None, now: datetime, half_life_days: float) -> float:
    """Return 1.0 for a document of this moment, falling towards 0.5 with age; 0.8 for an undated one.

    A date in the future counts as this moment.
    """
    if timestamp is None:
        return UNDATED_RECENCY
    moment = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    age_days = max(0.0, (now - moment).total_seconds() / 86_400.0)
    return OLD_RECENCY + (1.0 - OLD_RECENCY) * 0.5 ** (age_days / half_life_days)


def select(
    documents: Sequence[RetrievedDocument], settings: SelectionSettings, *, now: datetime
) -> list[RetrievedDocument]:
    """Return the passages for the context, the most valuable first.

    Greedy: at each step the passage with the best balance of combined score and difference from those
    chosen. One that does not fit the rest of the budget is passed over; a smaller one behind it may still
    fit. The first is always chosen, for assembly can shorten it.
    """
    floor = settings.min_relative * max((document.relevance for document in documents), default=0.0)
    pool = [document for document in documents if document.relevance >= floor][: 4 * settings.max_documents]
    value = [combined_score(document, settings, now) for document in pool]
    words = [frozenset(terms(document.text)) for document in pool]
    likeness = [0.0] * len(pool)
    left = set(range(len(pool)))
    chosen: list[RetrievedDocument] = []
    spent = 0
    while left and len(chosen) < settings.max_documents:
        best = max(left, key=lambda i: ((1 - settings.diversity) * value[i] - settings.diversity * likeness[i], -i))
        left.discard(best)
        if likeness[best] >= 1.0 or (chosen and spent + pool[best].tokens > settings.max_tokens):
            continue
        chosen.append(pool[best])
        spent += pool[best].tokens
        for i in left:
            likeness[i] = max(likeness[i], _jaccard(words[i], words[best]))
    return chosen


def _jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    union = len(left | right)
    return len(left & right) / union if union else 1.0
