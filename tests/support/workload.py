"""The session every process proof and measurement traces: query, retrieval with five chunks, generation, end."""

from __future__ import annotations

from spanforge.sdk import sf_rag

QUERY = "What is the capital of France?"
CHUNKS = [
    {"chunk_id": f"doc-{n}-p3", "score": 0.9 - n * 0.1, "source": "docs/geo.md", "content_hash": "a" * 64}
    for n in range(5)
]
IDS = [str(chunk["chunk_id"]) for chunk in CHUNKS]
EVENTS = 4
"""Events of one session."""


def one_session(session_id: str | None = None) -> str:
    """Trace one whole session and return its id."""
    own = sf_rag.trace_query(
        QUERY, session_id=session_id, top_k=5, retriever_name="chroma", embedding_model="e5", namespace="docs"
    )
    sf_rag.trace_retrieval(own, CHUNKS, latency_ms=45.2)
    sf_rag.trace_generation(
        own,
        "gpt-4o",
        chunk_ids_used=IDS,
        prompt_tokens=512,
        output_tokens=128,
        grounding_score=0.91,
        latency_ms=1230.0,
    )
    sf_rag.end_session(own)
    return own
