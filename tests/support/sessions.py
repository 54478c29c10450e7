"""Hypothesis strategies for whole sessions: any stages, in any number, with any values the payloads take."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from support.golden import Recorder

from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import (
    EscalationPayload,
    RAGEvaluationPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RetrievedChunk,
)
from spanforge.namespaces.stages import SESSION

SLOW_TO_DRAW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.sampled_from(["", "a", "pinecone", "mödel/3", "x" * 300])
MODELS = st.sampled_from(["m", "mödel/3"])
IDS = st.sampled_from([f"c{n}" for n in range(6)])
SCORES = st.floats(0, 1)
LATENCIES = st.one_of(st.floats(0, 1e5), st.sampled_from([0.0, 1e14]))
COUNTS = st.one_of(st.integers(0, 10_000), st.just(10**14))
HASHES = st.sampled_from(["", "ab" * 32, "sha256:" + "cd" * 32])
ERRORS = st.sampled_from([None, "TimeoutError", "str:sha256:" + "ef" * 32])
STATUSES = st.sampled_from(["ok", "partial", "error", "timeout"])
SESSION_IDS = st.sampled_from(["chosen-by-caller", "01KDVD6H000000000000000000"])

CHUNKS = st.lists(
    st.builds(
        RetrievedChunk,
        chunk_id=IDS,
        content_hash=HASHES,
        score=SCORES,
        source=st.sampled_from(["", "a.md", "https://example.com/b"]),
        metadata=st.dictionaries(st.sampled_from(["page", "part"]), st.integers(0, 9), max_size=2),
        rank=st.one_of(st.none(), st.integers(1, 9)),
    ),
    max_size=3,
).map(tuple)


def _query(session_id: str) -> st.SearchStrategy[RetrievalQueryPayload]:
    return st.builds(
        RetrievalQueryPayload,
        session_id=st.just(session_id),
        query_hash=HASHES,
        query_hash_alg=st.sampled_from([None, "hmac-sha256"]),
        top_k=st.integers(1, 10**15),
        retriever_name=NAMES,
        embedding_model=NAMES,
        embedding_dimensions=st.one_of(st.none(), st.integers(1, 4096)),
        namespace=NAMES,
        pipeline_name=st.one_of(st.none(), NAMES),
        latency_ms=st.none() | LATENCIES,
        filters=st.dictionaries(st.sampled_from(["year", "team"]), st.integers(), max_size=2),
    )


def _retrieved(session_id: str, *, says: bool) -> st.SearchStrategy[RetrievalResultPayload]:
    strategies = st.just("single_pass") if says else st.sampled_from([None, "single_pass", "multi_pass"])
    rankings = st.just("rrf") if says else st.sampled_from([None, "cosine", "rrf"])
    return st.builds(
        RetrievalResultPayload,
        session_id=st.just(session_id),
        query_hash=HASHES,
        chunks=CHUNKS,
        total_found=COUNTS,
        latency_ms=st.none() | LATENCIES,
        status=STATUSES,
        error_message=ERRORS,
        retrieval_strategy=strategies,
        ranking_method=rankings,
        budget_exhausted=st.sampled_from([None, True, False]),
        ceiling_reached=st.sampled_from([None, "", "tokens"]),
    )


def _reranked(session_id: str) -> st.SearchStrategy[RerankPayload]:
    return st.builds(
        RerankPayload,
        session_id=st.just(session_id),
        model=MODELS,
        input_count=st.none() | COUNTS,
        output_count=st.none() | COUNTS,
        chunks=CHUNKS,
        latency_ms=st.none() | LATENCIES,
        status=STATUSES,
        error_message=ERRORS,
    )


def _generated(session_id: str) -> st.SearchStrategy[RAGSpanPayload]:
    return st.builds(
        RAGSpanPayload,
        session_id=st.just(session_id),
        model=MODELS,
        provider=st.sampled_from([None, "openai"]),
        chunk_ids_used=st.lists(IDS, max_size=4).map(tuple),
        prompt_tokens=st.none() | COUNTS,
        output_tokens=st.none() | COUNTS,
        latency_ms=st.none() | LATENCIES,
        status=st.sampled_from(["ok", "error", "timeout", "cancelled"]),
        cached_tokens=st.none() | COUNTS,
        cost_usd=st.none() | st.floats(0, 1e9),
        temperature=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        grounding_score=st.one_of(st.none(), SCORES),
        error_message=ERRORS,
        finish_reason=st.sampled_from([None, "stop"]),
        time_to_first_token_ms=st.one_of(st.none(), LATENCIES),
    )


def _evaluated(session_id: str) -> st.SearchStrategy[RAGEvaluationPayload]:
    return st.builds(
        RAGEvaluationPayload,
        session_id=st.just(session_id),
        context_relevance=st.one_of(st.none(), SCORES),
        groundedness=st.one_of(st.none(), SCORES),
        latency_ms=st.none() | LATENCIES,
    )


def _escalated(session_id: str) -> st.SearchStrategy[EscalationPayload]:
    return st.builds(
        EscalationPayload,
        session_id=st.just(session_id),
        rule=MODELS,
        value=st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    )


KINDS = {EscalationPayload: "llm.rag.escalated"}


@st.composite
def sessions(draw: st.DrawFn, *, says: bool = False) -> list[Event]:
    """Draw the events of one session; `says` makes every retrieval say its strategy and ranking method."""
    session_id = draw(SESSION_IDS)
    run = Recorder(session_id)
    stage = st.one_of(
        _query(session_id),
        _retrieved(session_id, says=says),
        _reranked(session_id),
        _generated(session_id),
        _evaluated(session_id),
        _escalated(session_id),
    )
    at = 0.0
    for payload in draw(st.lists(stage, min_size=1, max_size=5)):
        at += draw(st.floats(0, 1000))
        run.add(at, payload, KINDS.get(type(payload), ""))
    if draw(st.booleans()):
        run.end(at, started_at=draw(st.sampled_from([None, "2026-01-01T00:00:00.000000Z", "nonsense"])))
    return draw(st.permutations(run.events))


@st.composite
def stores(draw: st.DrawFn) -> list[Event]:
    """Draw the events of some sessions, of organisations that use the same ids; some come twice.

    Ids of events are those of other sessions too, and within a session each is one event's.
    """
    found: list[Event] = []
    drawn: Counter[tuple[str, str]] = Counter()
    for number, events in enumerate(draw(st.lists(sessions(), max_size=5))):
        org, own = draw(st.sampled_from(["", "acme", "globex"])), draw(st.booleans())
        # Sampled away: nothing but the summary, where there is one.
        only = [event for event in events if event.event_type == SESSION and draw(st.booleans())]
        session_id = f"{events[0].session_id}-{number}" if own else events[0].session_id
        part = drawn[org, session_id]
        drawn[org, session_id] += 1
        for event in only or events:
            payload = {**event.payload, "session_id": session_id}
            event_id = f"{event.event_id[:12]}{part}{event.event_id[13:]}"
            found.append(replace(event, org_id=org, session_id=session_id, payload=payload, event_id=event_id))
    return found + draw(st.lists(st.sampled_from(found), max_size=3)) if found else found
