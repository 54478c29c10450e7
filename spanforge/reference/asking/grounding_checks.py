"""Grounding before and after the answer (sub-contract 4, protocol step 5), around the bundled grounder.

A grounder that fails is a GROUNDING_FAILED, and the score stays absent: no figure is ever made up for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from spanforge.reference import grounding
from spanforge.reference.answering.choice import choose
from spanforge.reference.failures import GroundingFailed, InsufficientContext, Translated
from spanforge.reference.grounding import AnswerGrounding
from spanforge.reference.models import GroundingInput, GroundingOutput, RetrievedDocument
from spanforge.reference.passages import reading_of

GROUNDED_AT = 0.8
"""Grounding score from which an answer counts as grounded (protocol, validation criteria)."""
GROUNDABLE_AT = 0.5
"""Groundability from which a question counts as answerable from its passages."""
RELEVANT_AT = 0.1
"""A passage whose own relevance is lower is left out before an answer is tried."""

T = TypeVar("T")
_GROUNDER_ERRORS = (ValueError, ArithmeticError, LookupError, TypeError, OSError, RuntimeError)


class Grounder(Protocol):
    """Judges contexts against a question, and an answer against contexts."""

    def groundability(self, question: str, contexts: Sequence[str]) -> tuple[float, Sequence[float], Sequence[str]]:
        """Return a score in [0, 1], the relevance of each context, and what is missing."""
        ...

    def verify_answer(self, answer: str, contexts: Sequence[str], question: str) -> AnswerGrounding:
        """Return the verdict on every claim of the answer."""
        ...


def check_context(request: GroundingInput, grounder: Grounder = grounding) -> GroundingOutput:
    """Judge whether the passages can answer the question.

    In strict mode they have to speak of what is asked, as the grounder sees it, and to hold an answer that is more
    likely right than not, as the offline answerer sees it, whoever is to write the answer.

    Raises:
        GroundingFailed: The grounder failed.
        InsufficientContext: Strict mode, and they cannot.
    """
    contexts = contexts_of(request.documents)
    score, relevance, gaps = _run(lambda: grounder.groundability(request.query, contexts))
    relevant = [document for document, share in zip(request.documents, relevance, strict=True) if share >= RELEVANT_AT]
    output = GroundingOutput(
        is_groundable=score >= GROUNDABLE_AT,
        grounding_score=min(1.0, max(0.0, score)),
        relevant_docs=relevant,
        gaps=list(gaps),
    )
    if request.strict_mode and not (
        output.is_groundable and choose(request.query, relevant or request.documents).is_certain
    ):
        raise InsufficientContext
    return output


def check_answer(
    answer: str, documents: Sequence[RetrievedDocument], question: str, grounder: Grounder = grounding
) -> AnswerGrounding:
    """Judge every claim of an answer against its passages.

    Raises:
        GroundingFailed: The grounder failed.
    """
    return _run(lambda: grounder.verify_answer(answer, contexts_of(documents), question))


def contexts_of(documents: Sequence[RetrievedDocument]) -> list[str]:
    """Return what the grounder reads of each passage: the headings over it, then its text, tables row by row."""
    return [reading_of(document) for document in documents]


def _run(work: Callable[[], T]) -> T:
    with Translated(_GROUNDER_ERRORS, lambda _: GroundingFailed()):
        return work()
