"""From what the stages found to what the caller gets."""

from __future__ import annotations

from collections.abc import Sequence

from spanforge.reference.answering.base import REFUSAL
from spanforge.reference.asking.grounding_checks import GROUNDED_AT
from spanforge.reference.failures import ContextIgnored, NotGrounded, RagFailure
from spanforge.reference.grounding import AnswerGrounding
from spanforge.reference.grounding.verify import claims_of
from spanforge.reference.models import (
    PARTLY_READ,
    AnsweringOutput,
    CheckedClaim,
    RagResult,
    RagStatus,
    RetrievedDocument,
)
from spanforge.reference.tracing import ESCALATE_BELOW

_UNVERIFIED = 0.5
"""What stands for the grounding score of an answer that could not be verified."""


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
        grounding_score=None,
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
    """Return the result of an answer, with a warning where it is not grounded or cites nothing.

    What a model wrote is as likely right as its passages hold the answer and bear it out; a quotation needs no bearing
    out.
    """
    score = verdict.score if verdict else None
    claims = _checked(output.answer, question, documents, verdict)
    status = status_of(score) if output.is_certain else RagStatus.UNCERTAIN
    noted = [*warnings, *output.warnings]
    if status is RagStatus.NOT_GROUNDED:
        noted.append(NotGrounded.code)
    cited = {citation.chunk_id for citation in output.citations_used}
    if any(PARTLY_READ in document.metadata for document in documents if document.chunk_id in cited):
        noted.append(PARTLY_READ.upper())
    if not output.citations_used:
        noted.append(ContextIgnored.code)
    return RagResult(
        answer=output.answer,
        citations_used=output.citations_used,
        sources=list(dict.fromkeys(citation.source for citation in output.citations_used)),
        confidence=output.confidence * (1.0 if output.is_quoted else _UNVERIFIED if score is None else score),
        grounding_score=score,
        status=status,
        claims_total=verdict.claims_total if verdict else 0,
        claims_supported=verdict.claims_supported if verdict else 0,
        weakest_claim=verdict.weakest if verdict else None,
        claims=claims,
        ungrounded_claims=[claim.claim for claim in claims if claim.verdict != "supported"],
        gaps=list(gaps),
        warnings=noted,
        documents=list(documents),
    )


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
