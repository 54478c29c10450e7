"""The session of `workload.py` as an application would trace it with opentelemetry-sdk: four spans, the same attributes."""

from __future__ import annotations

import hashlib

from opentelemetry.trace import Tracer
from support.workload import CHUNKS, IDS, QUERY

SPANS = 4
"""Spans of one session."""


def one_session(tracer: Tracer) -> None:
    """Trace one whole session."""
    with tracer.start_as_current_span("rag.session"):
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
