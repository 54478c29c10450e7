"""The session of `workload.py` traced with opentelemetry-sdk: four spans with the attributes of our four events."""

from __future__ import annotations

import hashlib

from opentelemetry.trace import Tracer
from support.workload import CHUNKS, IDS, QUERY

SPANS = 4
"""Spans of one session."""


SUMMARY = {
    "total_queries": 1,
    "total_chunks_used": 5,
    "total_input_tokens": 512,
    "total_output_tokens": 128,
    "avg_grounding_score": 0.91,
    "total_latency_ms": 1275.2,
    "status": "ok",
    "retriever_name": "chroma",
    "total_chunks_retrieved": 5,
    "unique_chunk_ids": IDS,
    "chunk_ids_truncated": False,
    "min_grounding_score": 0.91,
    "grounding_count": 1,
    "retrieval_count": 1,
    "rerank_count": 0,
    "generation_count": 1,
    "evaluation_count": 0,
    "query_latency_ms": 0.0,
    "retrieval_latency_ms": 45.2,
    "rerank_latency_ms": 0.0,
    "generation_latency_ms": 1230.0,
    "evaluation_latency_ms": 0.0,
    "error_count": 0,
    "end_reason": "ended",
    "partial_view": False,
}
"""What our fourth event says, ready made: with opentelemetry-sdk an application would have to add it up first."""


def one_session(tracer: Tracer, *, summary: bool = True) -> None:
    """Trace one whole session.

    Args:
        summary: Give the session's span the attributes of our summary; without, it is a bare parent.
    """
    with tracer.start_as_current_span("rag.session") as session:
        with tracer.start_as_current_span("rag.query") as span:
            span.set_attribute("query_hash", hashlib.sha256(QUERY.encode()).hexdigest())
            span.set_attribute("top_k", 5)
            span.set_attribute("retriever_name", "chroma")
            span.set_attribute("embedding_model", "e5")
            span.set_attribute("namespace", "docs")
            span.set_attribute("latency_ms", 0.0)
        with tracer.start_as_current_span("rag.retrieved") as span:
            for place, chunk in enumerate(CHUNKS):
                for name, value in chunk.items():
                    span.set_attribute(f"chunks.{place}.{name}", value)
            span.set_attribute("total_found", len(CHUNKS))
            span.set_attribute("latency_ms", 45.2)
            span.set_attribute("status", "ok")
        with tracer.start_as_current_span("rag.generated") as span:
            span.set_attribute("model", "gpt-4o")
            span.set_attribute("chunk_ids_used", IDS)
            span.set_attribute("prompt_tokens", 512)
            span.set_attribute("output_tokens", 128)
            span.set_attribute("grounding_score", 0.91)
            span.set_attribute("latency_ms", 1230.0)
            span.set_attribute("status", "ok")
        if summary:
            for name, value in SUMMARY.items():
                session.set_attribute(name, value)
