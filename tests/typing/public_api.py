"""The public API as an application uses it. pyright and mypy check this file, both strict; nothing runs it.

Lines that must not pass carry a `# type: ignore` for both: one that is not needed is an error of its own.
"""
# ruff: noqa: PGH003  the two have names of their own for each error
# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

import spanforge
from spanforge import (
    ConfigError,
    DecodeError,
    DeliveryReceipt,
    EscalationPayload,
    Event,
    EventReader,
    FeedbackRating,
    FeedbackStatusInfo,
    FeedbackSubmittedPayload,
    FeedbackSummaryPayload,
    InvalidPayloadError,
    MissingExtraError,
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RAGStatusInfo,
    Receipt,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RetrievedChunk,
    SecretStr,
    SessionAggregate,
    Settings,
    SFClientConfig,
    SFFeedbackClient,
    SFRAGClient,
    Sink,
    SinkLedger,
    SinkWriteError,
    SpanforgeError,
    StrictModeError,
    UnknownSessionError,
    __version__,
    configure,
    flush,
    follow,
    get_status,
    read_events,
    sf_feedback,
    sf_rag,
    shutdown,
)


def four_lines(question: str) -> RAGSessionPayload:
    session_id = sf_rag.trace_query(question, top_k=3, filters={"year": 2026})
    assert_type(session_id, str)
    sf_rag.trace_retrieval(session_id, [{"chunk_id": "a", "score": 0.5, "source": "a.md"}], total_found=9)
    sf_rag.trace_generation(session_id, "model", chunk_ids_used=["a"], grounding_score=0.9)
    return sf_rag.end_session(session_id)


def scopes(question: str) -> RAGSessionPayload | None:
    with sf_rag.bind(org_id="acme", tenant="a"), sf_rag.session(question, top_k=3) as session:
        with session.retrieval(ranking_method="bm25") as retrieval:
            retrieval.record([("text", 0.5)], total_found=1)
        with session.generation("model") as generation:
            generation.first_token()
            generation.record(output_tokens=3)
        sf_rag.escalate(rule="low grounding", level=2)
        assert_type(session.session_id, str)
    return session.summary


def misspelt(question: str) -> None:
    sf_rag.session(question, top_kk=3)  # type: ignore
    sf_rag.session(question, top_k="3")  # type: ignore
    sf_rag.retrieval(total=3)  # type: ignore
    with sf_rag.generation("model") as generation, sf_rag.rerank("model") as rerank:
        generation.record(tokens=3)  # type: ignore
        rerank.record([], inputs=3)  # type: ignore
    configure(sample_rat=0.5)  # type: ignore
    assert spanforge.sf_ragg  # type: ignore


async def waiting() -> DeliveryReceipt:
    async with sf_rag.session("q") as session, session.rerank("model") as rerank:
        rerank.record([RetrievedChunk("a", "", 0.5, "a.md", {})])
    return await sf_rag.aflush(timeout=1.0)


def status() -> dict[str, int]:
    configure(SFClientConfig(project_id="p"), sinks=["structlog", "jsonl:events.jsonl"], hash_key=SecretStr("k" * 32))
    info = get_status()
    assert_type(info, RAGStatusInfo)
    assert_type(spanforge.get_status(), RAGStatusInfo)
    ledgers: dict[str, SinkLedger] = dict(info.sinks)
    if flush(1.0) or shutdown(timeout=1.0):
        return {name: ledger.delivered for name, ledger in ledgers.items()}
    return {}


def feedback() -> FeedbackSummaryPayload:
    assert_type(sf_feedback.submit("s", "t", FeedbackRating.STAR_5, comment="Lovely."), str)
    assert_type(sf_feedback.get_status(), FeedbackStatusInfo)
    return sf_feedback.get_summary("s")


def clients() -> tuple[SFRAGClient, SFFeedbackClient]:
    return SFRAGClient(SFClientConfig()), SFFeedbackClient()


def stored() -> list[str]:
    reader = read_events("events.jsonl")
    assert_type(reader, EventReader)
    aggregate = SessionAggregate.empty()
    for event in reader:
        assert_type(event, Event)
        aggregate = aggregate.merge(SessionAggregate.of(event))
    assert_type(aggregate.summary("s"), RAGSessionPayload)
    return [event.event_id for event in follow("events.jsonl")]


class Mine:
    """A sink of one's own."""

    name = "mine"

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        raise SinkWriteError("ENOSPC", delivered=len(events) - 1)

    def idle(self) -> None: ...
    def close(self) -> None: ...
    def after_fork(self) -> None: ...


def own_sink() -> None:
    mine: Sink = Mine()
    configure(sinks=mine)
    configure(sinks=["structlog", mine])


def errors() -> list[type[SpanforgeError]]:
    return [
        ConfigError,
        DecodeError,
        InvalidPayloadError,
        MissingExtraError,
        SinkWriteError,
        StrictModeError,
        UnknownSessionError,
    ]


def payloads() -> list[object]:
    return [
        EscalationPayload("s", "rule"),
        FeedbackSubmittedPayload,
        RAGEvaluationPayload("s"),
        RAGSpanPayload("s"),
        RerankPayload("s", "m"),
        RetrievalQueryPayload("s", "h"),
        RetrievalResultPayload("s"),
        Settings().sinks,
        __version__.upper(),
    ]
