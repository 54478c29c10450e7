"""The public API as an application uses it. pyright checks this file, in strict mode; nothing runs it."""

from __future__ import annotations

from typing import assert_type

from spanforge import configure, sf_feedback, sf_rag
from spanforge.namespaces.feedback import FeedbackSummaryPayload
from spanforge.namespaces.retrieval import RAGSessionPayload, RetrievedChunk
from spanforge.sdk import RAGStatusInfo, SFClientConfig


def four_lines(question: str) -> RAGSessionPayload:
    session_id = sf_rag.trace_query(question, top_k=3, filters={"year": 2026})
    assert_type(session_id, str)
    sf_rag.trace_retrieval(session_id, [{"chunk_id": "a", "score": 0.5, "source": "a.md"}], total_found=9)
    sf_rag.trace_generation(session_id, "model", chunk_ids_used=["a"], grounding_score=0.9)
    return sf_rag.end_session(session_id)


def scopes(question: str) -> RAGSessionPayload | None:
    with sf_rag.bind(org_id="acme", tenant="a"), sf_rag.session(question) as session:
        with session.retrieval() as retrieval:
            retrieval.record([("text", 0.5)], total_found=1)
        with session.generation("model") as generation:
            generation.first_token()
            generation.record(output_tokens=3)
        sf_rag.escalate(rule="low grounding", level=2)
        assert_type(session.session_id, str)
    return session.summary


async def waiting() -> int:
    async with sf_rag.session("q") as session, session.rerank("model") as rerank:
        rerank.record([RetrievedChunk("a", "", 0.5, "a.md", {})])
    return await sf_rag.aflush(timeout=1.0)


def status() -> dict[str, int]:
    configure(SFClientConfig(project_id="p"), sinks=["structlog", "jsonl:events.jsonl"])
    info = sf_rag.get_status()
    assert_type(info, RAGStatusInfo)
    sf_feedback.submit("s", "t", "star_5", comment="Lovely.")
    assert_type(sf_feedback.get_summary("s"), FeedbackSummaryPayload)
    return {name: ledger.delivered for name, ledger in info.sinks.items()}
