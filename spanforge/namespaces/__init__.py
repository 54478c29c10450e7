"""What an event says: the envelope, the payloads and the hash chain."""

from __future__ import annotations

from typing import Final

from spanforge.namespaces._payload import Payload
from spanforge.namespaces.feedback import FeedbackSubmittedPayload
from spanforge.namespaces.retrieval import (
    EscalationPayload,
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
)

__all__ = ["PAYLOADS"]

PAYLOADS: Final[dict[str, type[Payload]]] = {
    "llm.rag.query": RetrievalQueryPayload,
    "llm.rag.retrieved": RetrievalResultPayload,
    "llm.rag.reranked": RerankPayload,
    "llm.rag.generated": RAGSpanPayload,
    "llm.rag.evaluated": RAGEvaluationPayload,
    "llm.rag.session": RAGSessionPayload,
    "llm.rag.escalated": EscalationPayload,
    "llm.feedback.submitted": FeedbackSubmittedPayload,
}
"""The payload class of each type of event."""
