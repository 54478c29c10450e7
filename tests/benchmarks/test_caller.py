"""What a traced session costs the thread that traces it."""

from __future__ import annotations

import hashlib
import statistics
import time
import uuid

import pytest
import structlog
from support import otel_workload
from support.faulty_sinks import EncodingSink
from support.measuring import BLOCKS, Comparison, CountingExporter, Side, compare, provider_of, show
from support.workload import CHUNKS, IDS, QUERY, one_session

from spanforge.sdk import configure, sf_rag

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]
COLUMNS = ("compared with", "ours, µs a session", "theirs, µs a session", "ratio", "promise")


def against_opentelemetry_sdk(ours: Side, *, summary: bool) -> Comparison:
    exporter = CountingExporter()
    provider = provider_of(exporter)
    tracer = provider.get_tracer("benchmark")
    theirs = Side(lambda: otel_workload.one_session(tracer, summary=summary), provider.force_flush)
    measured = compare(ours, theirs, clock=time.thread_time_ns)
    provider.shutdown()
    assert exporter.spans == otel_workload.SPANS * 200 * (BLOCKS + 1), "void: opentelemetry-sdk dropped spans"
    return measured


def test_against_opentelemetry_sdk(ours, tmp_path):
    """BatchSpanProcessor with an exporter that does nothing; ours writes a file meanwhile.

    The promise is about the same four spans and attributes. Beside it stands what a session's span costs that
    carries no summary at all.
    """
    side = ours(f"jsonl:{tmp_path}/events.jsonl")
    same = against_opentelemetry_sdk(side, summary=True)
    bare = against_opentelemetry_sdk(side, summary=False)
    show(
        "Caller's cost",
        COLUMNS,
        [
            ("opentelemetry-sdk, the same attributes", same.ours, same.theirs, same.ratio, "≤ 0.35"),
            ("opentelemetry-sdk, no session summary", bare.ours, bare.theirs, bare.ratio, "none"),
        ],
    )
    assert same.ratio <= 0.35


def structlog_session(log: structlog.typing.FilteringBoundLogger) -> None:
    """The same four lines, written by hand: ids and digest as cheap as they come, no summary to compute."""
    session = uuid.uuid4().hex
    digest = hashlib.sha256(QUERY.encode()).hexdigest()
    log.info(
        "llm.rag.query",
        event_id=uuid.uuid4().hex,
        session_id=session,
        payload={
            "session_id": session,
            "query_hash": digest,
            "top_k": 5,
            "retriever_name": "chroma",
            "embedding_model": "e5",
            "namespace": "docs",
            "latency_ms": 0.0,
        },
    )
    log.info(
        "llm.rag.retrieved",
        event_id=uuid.uuid4().hex,
        session_id=session,
        payload={
            "session_id": session,
            "query_hash": digest,
            "chunks": [{**chunk, "metadata": {}} for chunk in CHUNKS],
            "total_found": 5,
            "latency_ms": 45.2,
            "status": "ok",
        },
    )
    log.info(
        "llm.rag.generated",
        event_id=uuid.uuid4().hex,
        session_id=session,
        payload={
            "session_id": session,
            "span_name": "rag-generation",
            "model": "gpt-4o",
            "chunk_ids_used": list(IDS),
            "context_tokens": 0,
            "prompt_tokens": 512,
            "output_tokens": 128,
            "latency_ms": 1230.0,
            "status": "ok",
            "grounding_score": 0.91,
        },
    )
    log.info(
        "llm.rag.session",
        event_id=uuid.uuid4().hex,
        session_id=session,
        payload={
            "session_id": session,
            "total_queries": 1,
            "total_chunks_used": 5,
            "total_input_tokens": 512,
            "total_output_tokens": 128,
            "avg_grounding_score": 0.91,
            "total_latency_ms": 1275.2,
            "status": "ok",
            "retriever_name": "chroma",
            "total_chunks_retrieved": 5,
            "unique_chunk_ids": list(IDS),
            "chunk_ids_truncated": False,
            "min_grounding_score": 0.91,
            "grounding_count": 1,
            "duration_ms": 0.1,
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
            "started_at": "2026-01-01T00:00:00.000000Z",
            "ended_at": "2026-01-01T00:00:00.000100Z",
            "end_reason": "ended",
            "partial_view": False,
        },
    )


def test_against_structlog(ours, tmp_path):
    """The same four JSON lines, written to a file by the calling thread."""
    with (tmp_path / "structlog.jsonl").open("w") as file:
        log = structlog.wrap_logger(
            structlog.WriteLogger(file),
            processors=[structlog.processors.TimeStamper(fmt="iso"), structlog.processors.JSONRenderer()],
            wrapper_class=structlog.make_filtering_bound_logger(20),
        ).bind()
        theirs = Side(lambda: structlog_session(log))
        measured = compare(ours(f"jsonl:{tmp_path}/events.jsonl"), theirs, clock=time.thread_time_ns)
    show("Caller's cost", COLUMNS, [("structlog to a file", measured.ours, measured.theirs, measured.ratio, "≤ 1.2")])
    assert measured.ratio <= 1.2


def block_with(sinks: int) -> float:
    """Caller's cost of a session, in microseconds, with so many sinks."""
    configure(sinks=[EncodingSink(f"sink-{n}") for n in range(sinks)], batch_delay_s=30)
    for _ in range(50):
        one_session()
    started = time.thread_time_ns()
    for _ in range(100):
        one_session()
    spent = (time.thread_time_ns() - started) / 100 / 1000
    assert sf_rag.flush(60) == 0
    assert not any(ledger.lost for ledger in sf_rag.get_status().sinks.values()), "void"
    return spent


def test_the_number_of_sinks_changes_nothing():
    pairs = [(block_with(5), block_with(1)) for _ in range(BLOCKS)]
    five, one = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(many / single for many, single in pairs)
    configure(sinks="memory")
    show(
        "Caller's cost by sinks", ("five sinks, µs", "one sink, µs", "ratio", "promise"), [(five, one, ratio, "≤ 1.15")]
    )
    assert ratio <= 1.15
