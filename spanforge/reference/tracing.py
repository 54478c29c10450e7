"""What the trace of a run says beside what its stages did: names, passages as the SDK reads them, and escalations.

The reference RAG meets the SDK by its public door, as any application would; no text goes there but the question and
the passages, which become their digests inside the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanforge.reference.models import RetrievedDocument
from spanforge.sdk import sf_rag
from spanforge.sdk.scopes import SessionScope

RETRIEVER_NAME = "spanforge-reference"
EVALUATOR_NAME = "spanforge-grounder"
ESCALATE_BELOW = 0.5
"""Grounding score under which a person is asked (protocol, automatic triggers)."""
SLOW_MS = 5000.0
"""Time from question to result, in milliseconds, beyond which a person is asked (protocol, automatic triggers)."""


def hits_of(documents: Sequence[RetrievedDocument]) -> list[dict[str, Any]]:
    """Return passages as the SDK reads them.

    With their text, which becomes its digest in the call that is given it: under the key where there is one, as
    everything else, while the digest in the index is a plain one. Page and raw score stand in the result.
    """
    return [
        {
            "chunk_id": document.chunk_id,
            "text": document.text,
            "score": document.score,
            "source": document.source,
        }
        for document in documents
    ]


def session(
    query: str,
    *,
    top_k: int,
    embedding_model: str,
    namespace: str,
    pipeline_name: str,
    conversation_id: str | None = None,
) -> SessionScope:
    """Open the run's session; it ends with the block."""
    return sf_rag.session(
        query,
        top_k=top_k,
        retriever_name=RETRIEVER_NAME,
        embedding_model=embedding_model,
        namespace=namespace,
        pipeline_name=pipeline_name,
        conversation_id=conversation_id,
    )


def escalate_where_due(
    session_id: str, *, grounding_score: float | None, nothing_found: bool, withheld: bool, latency_ms: float
) -> None:
    """Ask for a person where the protocol's automatic triggers hold; level 1 is the tuning of retrieval.

    Args:
        session_id: The run.
        grounding_score: Of the answer that was given.
        nothing_found: Whether the documents did not answer.
        withheld: Whether strict mode kept back an answer that its documents did not support.
        latency_ms: Time from question to result.
    """
    if withheld:
        sf_rag.escalate(session_id, "answer-withheld", trigger="grounding", level=1)
    elif nothing_found:
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
