"""The golden sessions: one run in every variant, with fixed ids and times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spanforge import _clock, _ids
from spanforge.namespaces.event import NOT_SAMPLED, Event
from spanforge.namespaces.feedback import FeedbackRating, FeedbackSubmittedPayload
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import (
    EscalationPayload,
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RetrievedChunk,
)
from spanforge.sessions.fold import SessionAggregate

START_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
QUERY_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
TYPES = {
    RetrievalQueryPayload: "llm.rag.query",
    RetrievalResultPayload: "llm.rag.retrieved",
    RerankPayload: "llm.rag.reranked",
    RAGSpanPayload: "llm.rag.generated",
    RAGEvaluationPayload: "llm.rag.evaluated",
    RAGSessionPayload: "llm.rag.session",
    EscalationPayload: "llm.rag.escalated",
    FeedbackSubmittedPayload: "llm.feedback.submitted",
}


class Recorder:
    """Makes the events of one session, each at a given number of milliseconds after the start."""

    def __init__(self, session_id: str, offset: int = 0) -> None:
        self.session_id = session_id
        self.events: list[Event] = []
        self._offset = offset

    def add(self, at_ms: float, payload: Payload, kind: str = "", **envelope: object) -> Event:
        wall_ns = START_NS + round(at_ms * 1e6)
        number = (wall_ns // 1_000_000 << 80) | (self._offset << 16) | (len(self.events) + 1)
        root = isinstance(payload, RAGSessionPayload)
        root_span = _ids.root_span_id_of(self.session_id)
        fields: dict[str, object] = {
            "trace_id": _ids.trace_id_of(self.session_id),
            "span_id": root_span if root else _ids.span_id_of(number),
            "parent_span_id": "" if root else root_span,
            "org_id": "acme",
            "tags": {"env": "test"},
        }
        event = Event(
            event_id=_ids.encode(number),
            event_type=kind or TYPES[type(payload)],
            timestamp=_clock.timestamp(wall_ns),
            source="golden@1.2.3",
            session_id=self.session_id,
            payload=payload.to_dict(),
            **{**fields, **envelope},
        )
        self.events.append(event)
        return event

    def end(self, at_ms: float, **changes: object) -> list[Event]:
        """Add the summary and return every event."""
        whole = SessionAggregate.empty()
        for event in self.events:
            whole = whole.merge(SessionAggregate.of(event))
        values = {
            **whole.summary(self.session_id).to_dict(),
            "started_at": _clock.timestamp(START_NS),
            "ended_at": _clock.timestamp(START_NS + round(at_ms * 1e6)),
            "duration_ms": at_ms,
            "end_reason": "ended",
            **changes,
        }
        self.add(at_ms, RAGSessionPayload(**values))
        return self.events


def chunk(number: int, score: float, source: str = "") -> RetrievedChunk:
    return RetrievedChunk(
        chunk_id=f"chunk-{number}",
        content_hash=f"{number:064x}",
        score=score,
        source=source or f"docs/handbook-{number}.md",
        rank=number,
        metadata={"page": number},
    )


CHUNKS = (chunk(1, 0.96), chunk(2, 0.91), chunk(3, 0.72))


def query(session_id: str, **changes: object) -> RetrievalQueryPayload:
    values: dict[str, object] = {
        "session_id": session_id,
        "query_hash": QUERY_HASH,
        "top_k": 3,
        "retriever_name": "pinecone",
        "embedding_model": "text-embedding-3-small",
        "embedding_dimensions": 1536,
        "namespace": "security-docs",
        "pipeline_name": "knowledge-base",
        "latency_ms": 12.5,
        "filters": {"year": 2026},
    }
    return RetrievalQueryPayload(**{**values, **changes})


def retrieved(session_id: str, **changes: object) -> RetrievalResultPayload:
    values: dict[str, object] = {
        "session_id": session_id,
        "query_hash": QUERY_HASH,
        "chunks": CHUNKS,
        "total_found": 40,
        "latency_ms": 30.0,
        "retrieval_strategy": "single_pass",
        "ranking_method": "cosine",
    }
    return RetrievalResultPayload(**{**values, **changes})


def reranked(session_id: str, **changes: object) -> RerankPayload:
    values: dict[str, object] = {
        "session_id": session_id,
        "model": "cross-encoder/ms-marco",
        "input_count": 3,
        "output_count": 2,
        "chunks": (chunk(2, 0.99), chunk(1, 0.5)),
        "latency_ms": 20.25,
    }
    return RerankPayload(**{**values, **changes})


def generated(session_id: str, **changes: object) -> RAGSpanPayload:
    values: dict[str, object] = {
        "session_id": session_id,
        "model": "gpt-4o",
        "provider": "openai",
        "chunk_ids_used": ("chunk-2", "chunk-1"),
        "context_tokens": 900,
        "prompt_tokens": 2500,
        "output_tokens": 800,
        "latency_ms": 850.0,
        "grounding_score": 0.93,
        "finish_reason": "stop",
    }
    return RAGSpanPayload(**{**values, **changes})


def evaluated(session_id: str, **changes: object) -> RAGEvaluationPayload:
    values: dict[str, object] = {
        "session_id": session_id,
        "evaluator": "judge",
        "context_relevance": 0.92,
        "answer_relevance": 0.88,
        "faithfulness": 0.95,
        "groundedness": 0.93,
        "claims_total": 10,
        "claims_supported": 9,
        "latency_ms": 100.0,
    }
    return RAGEvaluationPayload(**{**values, **changes})


def plain() -> list[Event]:
    run = Recorder("golden-plain", 1)
    run.add(12.5, query(run.session_id))
    run.add(45, retrieved(run.session_id))
    run.add(900, generated(run.session_id))
    return run.end(905)


def rerank() -> list[Event]:
    run = Recorder("golden-rerank", 2)
    run.add(12.5, query(run.session_id))
    run.add(45, retrieved(run.session_id))
    run.add(70, reranked(run.session_id))
    run.add(930, generated(run.session_id))
    return run.end(935)


def evaluation() -> list[Event]:
    """The whole tree: seven spans with the embedding's."""
    run = Recorder("01KDVD6H000000000000000000", 3)
    run.add(12.5, query(run.session_id))
    run.add(45, retrieved(run.session_id))
    run.add(70, reranked(run.session_id))
    run.add(930, generated(run.session_id))
    run.add(1040, evaluated(run.session_id))
    return run.end(1045)


def error() -> list[Event]:
    run = Recorder("golden-error", 4)
    run.add(12.5, query(run.session_id, pipeline_name=None, retriever_name="", namespace="", embedding_model=""))
    run.add(45, retrieved(run.session_id, chunks=(), total_found=0))
    run.add(
        900,
        generated(
            run.session_id,
            status="error",
            error_message="RateLimitError",
            provider=None,
            grounding_score=None,
            chunk_ids_used=(),
            output_tokens=0,
            finish_reason=None,
        ),
    )
    return run.end(905, error_type="RateLimitError")


def timeout() -> list[Event]:
    run = Recorder("golden-timeout", 5)
    run.add(12.5, query(run.session_id, query_hash_alg="hmac-sha256", query_hash_key_id="0badcafe"))
    run.add(
        5045,
        retrieved(
            run.session_id,
            chunks=CHUNKS[:1],
            status="timeout",
            error_message=f"str:sha256:{'ab' * 32}",
            latency_ms=5000.0,
            budget_exhausted=True,
            ceiling_reached="time budget of 5000 ms",
        ),
    )
    return run.end(5050)


def orphan() -> list[Event]:
    """A generation service's part of a session that began elsewhere."""
    run = Recorder("golden-orphan", 6)
    run.add(900, generated(run.session_id))
    return run.events


def rich() -> list[Event]:
    """All that can be said, with an escalation, and feedback a day later."""
    run = Recorder("golden-rich", 7)
    run.add(12.5, query(run.session_id, embedding_provider="OpenAI", conversation_id="chat-42"), actor_id="user-7")
    run.add(45, retrieved(run.session_id, budget_exhausted=True, ceiling_reached="chunk limit of 40 reached"))
    run.add(70, reranked(run.session_id, input_count=None))
    said = {
        "provider": "Azure OpenAI",
        "response_id": "resp-1",
        "response_model": "gpt-4o-2024-08-06",
        "finish_reasons": ("stop", "length"),
        "cached_tokens": 1000,
        "cache_write_tokens": 200,
        "reasoning_tokens": 300,
        "temperature": 0.2,
        "cost_usd": 0.0125,
        "cost_basis": "genai-prices 0.2.3, prices of 2026-11-01",
    }
    run.add(930, generated(run.session_id, **said))
    run.add(1040, evaluated(run.session_id, span_name="rag-generation"))
    run.add(1041, EscalationPayload(run.session_id, "low-grounding", "grounding", 2, 0.3, 0.5))
    run.end(1045, conversation_id="chat-42")
    rating = FeedbackSubmittedPayload(
        feedback_id="01KDVD6H000000000000000001",
        session_id=run.session_id,
        trace_id="",
        rating=FeedbackRating.STAR_2,
        value=0.25,
    )
    run.add(86_400_000, rating)
    return run.events


def second_turn() -> list[Event]:
    """The second run of a session id that ended: an id of its own, and the conversation in common."""
    run = Recorder("golden-turn~2", 8)
    run.add(12.5, query(run.session_id, conversation_id="golden-turn"))
    run.add(45, retrieved(run.session_id))
    run.add(900, generated(run.session_id))
    return run.end(905, conversation_id="golden-turn")


def fallback() -> list[Event]:
    """A model that failed, another that answered in its place, and a judgement of that one."""
    run = Recorder("golden-fallback", 9)
    run.add(12.5, query(run.session_id))
    run.add(45, retrieved(run.session_id))
    failed = {"status": "error", "error_message": "RateLimitError", "grounding_score": None, "finish_reason": None}
    run.add(100, generated(run.session_id, latency_ms=50.0, prompt_tokens=None, output_tokens=None, **failed))
    run.add(900, generated(run.session_id, model="small", latency_ms=700.0))
    run.add(1000, evaluated(run.session_id, latency_ms=80.0))
    return run.end(1005)


def absent() -> list[Event]:
    """Nothing but what the calls require."""
    run = Recorder("golden-absent", 10)
    run.add(1, RetrievalQueryPayload(run.session_id, QUERY_HASH, embedding_model="e5", assumed=("top_k",)))
    run.add(2, RetrievalResultPayload(run.session_id))
    run.add(3, RerankPayload(run.session_id, "reranker"))
    run.add(4, RAGSpanPayload(run.session_id, model="m"))
    run.add(5, RAGEvaluationPayload(run.session_id))
    return run.end(6)


def streaming() -> list[Event]:
    """A stream that its reader broke off."""
    run = Recorder("golden-streaming", 11)
    run.add(12.5, query(run.session_id))
    run.add(45, retrieved(run.session_id))
    stopped = {"status": "cancelled", "output_tokens": None, "finish_reason": None, "grounding_score": None}
    run.add(900, generated(run.session_id, time_to_first_token_ms=120.0, stream=True, **stopped))
    return run.end(905)


def one_breath() -> list[Event]:
    """A whole run reported when it was over."""
    run = Recorder("golden-breath", 12)
    run.add(0.1, query(run.session_id))
    run.add(0.2, retrieved(run.session_id))
    run.add(0.3, reranked(run.session_id))
    run.add(0.4, generated(run.session_id))
    run.add(0.5, evaluated(run.session_id))
    return run.end(0.6)


def foreign_parent(session_id: str = "golden-parent", offset: int = 13, **flags: str) -> list[Event]:
    """Under a span of the application's own, whose trace is taken."""
    run = Recorder(session_id, offset)
    trace = {"trace_id": "0af7651916cd43dd8448eb211c80319c", **flags}
    run.add(12.5, query(run.session_id), **trace)
    run.add(45, retrieved(run.session_id), **trace)
    run.end(50)
    run.events[-1] = replace(run.events[-1], **trace, parent_span_id="b7ad6b7169203331")
    return run.events


def unsampled_parent() -> list[Event]:
    """Under a span of a trace that is not sampled, so that no span is sent."""
    return foreign_parent("golden-unsampled", 14, trace_flags=NOT_SAMPLED)


VARIANTS = {
    "plain": plain,
    "rerank": rerank,
    "evaluation": evaluation,
    "error": error,
    "timeout": timeout,
    "orphan": orphan,
    "rich": rich,
    "second turn": second_turn,
    "fallback": fallback,
    "absent": absent,
    "streaming": streaming,
    "one breath": one_breath,
    "foreign parent": foreign_parent,
    "unsampled parent": unsampled_parent,
}


def measure(sink: Any, variant: str) -> None:
    """Let a sink measure what it would be told of while these events were made."""
    for event in VARIANTS[variant]():
        sink.meter.record(event.event_type, event.payload)
