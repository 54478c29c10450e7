"""From what the stages found to what the caller gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanforge.reference.assembly import REFUSAL
from spanforge.reference.checks import ESCALATE_BELOW, GROUNDED_AT
from spanforge.reference.confidence import confidence
from spanforge.reference.failures import ContextIgnored, NotGrounded
from spanforge.reference.grounding.verify import claims_of
from spanforge.reference.models import CheckedClaim, RagResult, RagStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanforge.reference.failures import RagFailure
    from spanforge.reference.grounding import AnswerGrounding
    from spanforge.reference.models import AnsweringOutput, RetrievedDocument


def status_of(score: float | None) -> RagStatus:
    """Return the status that a grounding score stands for; without a score the answer is unverified."""
    if score is None:
        return RagStatus.UNVERIFIED
    if score >= GROUNDED_AT:
        return RagStatus.GROUNDED
    return RagStatus.PARTIALLY_GROUNDED if score >= ESCALATE_BELOW else RagStatus.NOT_GROUNDED


def refusal(
    failure: RagFailure | None,
    *,
    gaps: Sequence[str] = (),
    warnings: Sequence[str] = (),
    documents: Sequence[RetrievedDocument] = (),
) -> RagResult:
    """Return the one constant refusal, with the failure that led to it."""
    return RagResult(
        answer=REFUSAL,
        citations_used=[],
        sources=[],
        confidence=0.0,
        grounding_score=1.0,
        status=RagStatus.NO_INFORMATION,
        gaps=list(gaps),
        warnings=list(warnings),
        failure=failure.code if failure else None,
        documents=list(documents),
    )


def answered(
    output: AnsweringOutput,
    documents: Sequence[RetrievedDocument],
    verdict: AnswerGrounding | None,
    *,
    question: str = "",
    gaps: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> RagResult:
    """Return the result of an answer, with a warning where it is not grounded or cites nothing."""
    score = score_of(verdict)
    claims = _checked(output.answer, question, documents, verdict)
    status = status_of(score)
    noted = [*warnings, *output.warnings]
    if status is RagStatus.NOT_GROUNDED:
        noted.append(NotGrounded.code)
    if not output.citations_used:
        noted.append(ContextIgnored.code)
    return RagResult(
        answer=output.answer,
        citations_used=output.citations_used,
        sources=list(dict.fromkeys(citation.source for citation in output.citations_used)),
        confidence=_confidence(output, documents, score),
        grounding_score=score,
        status=status,
        claims_total=verdict.claims_total if verdict else 0,
        claims_supported=verdict.claims_supported if verdict else 0,
        claims=claims,
        ungrounded_claims=[claim.claim for claim in claims if claim.verdict != "supported"],
        gaps=list(gaps),
        warnings=noted,
        documents=list(documents),
    )


def score_of(verdict: AnswerGrounding | None) -> float | None:
    """Return the score that is reported: 1.0 where nothing is claimed, none where nothing was checked."""
    if verdict is None:
        return None
    return 1.0 if verdict.score is None else verdict.score


def _checked(
    answer: str, question: str, documents: Sequence[RetrievedDocument], verdict: AnswerGrounding | None
) -> list[CheckedClaim]:
    if verdict is None:
        return []
    texts = claims_of(answer, question)
    return [
        CheckedClaim(
            claim=texts[one.claim_index],
            verdict=one.verdict,
            support=one.probability,
            chunk_id=None if one.context_index is None else documents[one.context_index].chunk_id,
        )
        for one in verdict.verdicts
    ]


def _confidence(
    output: AnsweringOutput, documents: Sequence[RetrievedDocument], grounding_score: float | None
) -> float:
    scores = sorted((document.score for document in documents), reverse=True)
    margin = scores[0] - scores[1] if len(scores) > 1 else 0.0
    return confidence(output.confidence, grounding_score, margin)
