"""A store filled by the reference RAG through the SDK: the sessions that a person would look at in the viewer."""

from __future__ import annotations

from pathlib import Path

from spanforge.reference import Pipeline
from spanforge.sdk import sf_feedback, sf_rag
from spanforge.sinks.sqlite import SqliteSink
from spanforge.testing import capture

QUESTION = "What is the capital of France?"
HOSTILE = "<script>alert(1)</script>\u202ereversed\u0007"

_QUESTIONS = (
    QUESTION,
    "How many days of paid leave do employees get?",
    "Who won the chess championship on Mars?",
    "How long is the Golden Gate Bridge?",
    "What is photosynthesis?",
    "What does RAG stand for?",
    "Which countries border France?",
    "How do I report a security incident?",
    "What is the limit for meals on expenses?",
    "Who approves travel?",
    "What is a span?",
    "When was the Eiffel Tower painted green?",
)


def real_run(path: Path, *, times: int = 1) -> list[str]:
    """Ask the bundled documents, rate some answers, let some calls fail; returns the ids of the asked sessions."""
    pipeline = Pipeline()
    ids: list[str] = []
    with capture(sinks=[SqliteSink(path)]):
        pipeline.ingest_bundled_corpus()
        for number, question in enumerate(_QUESTIONS * times):
            session_id = pipeline.ask(question).session_id
            ids.append(session_id)
            if number % 3 == 0:
                rating = ("thumbs_up", "star_4", "thumbs_down")[number // 3 % 3]
                sf_feedback.submit(session_id, rating=rating, source="chat", metadata={"issues": ["not_grounded"]})
        _by_hand()
        sf_rag.flush(10)
    return ids


def _by_hand() -> None:
    """Sessions that the reference RAG does not have: two turns, raw scores, failures, and one that goes on."""
    chunks = [
        {"chunk_id": f"passage-{rank}", "score": 31.5 - 4 * rank, "source": f"manual-{rank % 2}.pdf"}
        for rank in range(6)
    ]
    for status in ("ok", "error"):
        session_id = sf_rag.trace_query("two turns", retriever_name="pinecone", embedding_model="e5", latency_ms=0.4)
        sf_rag.trace_retrieval(
            session_id, chunks, total_found=214, latency_ms=48, retrieval_strategy="single_pass", ranking_method="bm25"
        )
        sf_rag.trace_rerank(
            session_id, "rerank-large", chunks=[chunks[2], chunks[0], chunks[4]], input_count=6, latency_ms=130
        )
        failed = (
            {"status": "timeout", "error_message": "TimeoutError"} if status == "error" else {"grounding_score": 0.41}
        )
        sf_rag.trace_generation(
            session_id, "gpt-4o", chunk_ids_used=["passage-2", "passage-0"], prompt_tokens=1840, output_tokens=212,
            context_tokens=1500, latency_ms=910, finish_reason="stop", provider="openai", **failed,
        )  # fmt: skip
        sf_rag.trace_evaluation(
            session_id, evaluator="judge", groundedness=0.41, faithfulness=0.6, answer_relevance=0.88,
            claims_total=7, claims_supported=3, latency_ms=75,
        )  # fmt: skip
        sf_rag.escalate(session_id, "grounding-below-half", trigger="grounding", level=2, value=0.41, threshold=0.5)
        sf_rag.end_session(session_id)
    session_id = sf_rag.trace_query("a turn", session_id=HOSTILE, retriever_name=HOSTILE)
    sf_rag.trace_retrieval(session_id, [{"chunk_id": HOSTILE * 40, "score": 0.5, "source": HOSTILE}], status="partial")
