"""The check before the answer: can these contexts answer the question at all?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from spanforge.reference.grounding.alignment import align
from spanforge.reference.grounding.contexts import PreparedContexts
from spanforge.reference.grounding.features import (
    WordWeights,
    is_mentioned,
    name_is_known,
    recall_anywhere,
    recall_around,
)
from spanforge.reference.grounding.lexicon import FRAME_WORDS
from spanforge.reference.grounding.sentence import Sentence

_NAME_MISSING: Final = 0.5
"""What remains of the score when the contexts nowhere mention a name the question asks about."""

_TOGETHER: Final = 0.3
"""What the contexts have together counts beside what the best passage has; a question may need several of them."""

_MAX_QUESTION_CHARS: Final = 4_096


class Groundability(NamedTuple):
    """Whether contexts can answer a question.

    Attributes:
        score: Share of the question's word weight that the best passage has, seven tenths, and that the contexts have
            together, three tenths; in [0, 1], and halved when a name is missing.
        relevance: For each context the share that its best passage has, in [0, 1].
        gaps: The question's words, as written, that no context has.
    """

    score: float
    relevance: list[float]
    gaps: list[str]


def groundability(question: str, contexts: Sequence[str]) -> Groundability:
    """Estimate whether contexts can support an answer, before one is generated.

    Args:
        question: The question.
        contexts: The retrieved texts.

    Returns:
        Score, relevance of each context, and gaps. A question without any content word scores 0.
    """
    weights = WordWeights()
    asked = Sentence(question[:_MAX_QUESTION_CHARS], 0)
    prepared = PreparedContexts.of(contexts)
    relevance = [0.0] * len(contexts)
    if not asked.words:
        return Groundability(0.0, relevance, [])
    for index, context in enumerate(contexts):
        single = PreparedContexts.of([context])
        nearest = align(asked, single, weights)
        relevance[index] = max((recall_around(asked, single, one.number, weights) for one in nearest), default=0.0)
    gaps: dict[str, str] = {}
    name_missing = False
    for index, word in enumerate(asked.stems):
        known = not word or is_mentioned(word, prepared)
        if known or word in FRAME_WORDS:
            continue
        gaps.setdefault(word, asked.tokens[index])
        if asked.is_name(index) and not name_is_known(word, asked.tokens[index], asked, prepared):
            name_missing = True
    together = recall_anywhere(asked, prepared, weights)
    score = (1 - _TOGETHER) * max(relevance, default=0.0) + _TOGETHER * together
    return Groundability(score * _NAME_MISSING if name_missing else score, relevance, list(gaps.values()))
