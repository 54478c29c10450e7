"""The one place where the reference RAG meets the SDK: by its public door, as any application would.

Each stage of a run reports here what it did: ids, digests, counts, scores and times. No text passes this
module but the question, which the SDK turns into its digest inside the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spanforge.reference.checks import ESCALATE_BELOW
from spanforge.sdk import sf_rag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanforge.reference.models import RetrievedDocument
    from spanforge.sdk.scopes import SessionScope

RETRIEVER_NAME = "spanforge-reference"
EVALUATOR_NAME = "spanforge-grounder"
SLOW_MS = 5000.0
"""Time from question to result, in milliseconds, beyond which a person is asked (protocol, automatic triggers)."""


def hits_of(documents: Sequence[RetrievedDocument]) -> list[dict[str, Any]]:
    """Return passages as the SDK records them: ids, digests and scores, no text.

    Just the four keys that a chunk is made of, which the SDK reads fastest; page and raw score stand in the result.
    """
    return [
        {
            "chunk_id": document.chunk_id,
            "content_hash": document.content_hash,
            "score": document.score,
            "source": document.source,
        }
        for document in documents
    ]


def session(query: str, *, top_k: int, embedding_model: str, namespace: str, pipeline_name: str) -> SessionScope:
    """Open the run's session; it ends with the block."""
    return sf_rag.session(
        query,
        top_k=top_k,
        retriever_name=RETRIEVER_NAME,
        embedding_model=embedding_model,
        namespace=namespace,
        pipeline_name=pipeline_name,
    )


def evaluation(
    *,
    grounding_score: float | None,
    context_relevance: float | None,
    claims_total: int,
    claims_supported: int,
    latency_ms: float,
) -> None:
    """Report the grounding check of the current session's answer."""
    sf_rag.trace_evaluation(
        evaluator=EVALUATOR_NAME,
        groundedness=grounding_score,
        context_relevance=context_relevance,
        claims_total=claims_total,
        claims_supported=claims_supported,
        latency_ms=latency_ms,
    )


def escalate_where_due(
    session_id: str, *, grounding_score: float | None, nothing_found: bool, latency_ms: float
) -> None:
    """Ask for a person where the protocol's automatic triggers hold; level 1 is the tuning of retrieval."""
    if nothing_found:
        sf_rag.escalate(session_id, "no-documents", trigger="no_documents", level=1)
    if grounding_score is not None and grounding_score < ESCALATE_BELOW:
        sf_rag.escalate(
            session_id,
            "grounding-below-half",
            trigger="grounding",
            level=1,
            value=grounding_score,
            threshold=ESCALATE_BELOW,
        )
    if latency_ms > SLOW_MS:
        sf_rag.escalate(session_id, "slow-answer", trigger="latency", level=1, value=latency_ms, threshold=SLOW_MS)
