"""The figures of one session, added up event by event in any order.

They come to what `spanforge.analysis` says of the same events: whole microseconds and billionths, divided only when
shown. Stages are folded; what a summary tells counts only where there are no stages (design, section 4).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, cast

from spanforge import _clock
from spanforge.namespaces._payload import Payload
from spanforge.namespaces.event import Event
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

__all__ = ["COLUMNS", "STAGES", "STATUSES", "Figures", "micros", "moment_us"]

STAGES: Final = ("query", "retrieval", "rerank", "generation", "evaluation")
STATUSES: Final = ("ok", "partial", "error")

_NANO: Final = 1_000_000_000
_LARGEST: Final = (1 << 63) - 1
_SEVERITY: Final = {"ok": 0, "partial": 1, "error": 2, "timeout": 2}
_ERROR: Final = 2

COLUMNS: Final = (
    "started", "ended", "status", "retriever", "latency", "grounding", *(f"{stage}_us" for stage in STAGES),
    "queries", "retrievals", "chunks", "input", "output", "errors", "events", "escalations", "ratings", "rating",
)  # fmt: skip
"""What `Figures.row` gives, in this order: the columns of the table `session` that pages filter and sort by."""


def micros(milliseconds: float) -> int:
    """Return whole microseconds, halves up, as the session fold does (adr/0003)."""
    return int(milliseconds * 1000 + 0.5)


def moment_us(text: str) -> int:
    """Return an ISO 8601 time as microseconds since the epoch; 0 where it cannot be read."""
    try:
        return max(0, _clock.parse_timestamp(text) // 1000)
    except (ValueError, OverflowError):
        return 0


@dataclass(slots=True)
class Figures:
    """Running figures of one session.

    Attributes:
        events: Distinct events.
        first_id: Lowest event id; `first_us` is its time, in microseconds since the epoch.
        counts: How many of each stage, in the order of `STAGES`.
        us: Their latencies, in microseconds.
        chunks: Chunks retrieved, repeats included.
        nano: Sum of grounding scores in 1e-9; `scores` is how many.
        severity: 0 ok, 1 partial, 2 error: the worst of any stage.
        retriever: The one named by the query with the lowest id, `retriever_at`.
        told: What the last summary tells, from the event `told_at`.
        points: Sum of ratings in 1e-9; `rated` is how many had a value.
    """

    events: int = 0
    first_id: str = ""
    first_us: int = 0
    counts: list[int] = field(default_factory=lambda: [0] * len(STAGES))
    us: list[int] = field(default_factory=lambda: [0] * len(STAGES))
    chunks: int = 0
    input: int = 0
    output: int = 0
    nano: int = 0
    scores: int = 0
    errors: int = 0
    severity: int = 0
    retriever: str = ""
    retriever_at: str = ""
    told: dict[str, Any] | None = None
    told_at: str = ""
    escalations: int = 0
    ratings: int = 0
    points: int = 0
    rated: int = 0

    @classmethod
    def load(cls, state: str) -> Figures:
        """Read what `dump` wrote."""
        return cls(**json.loads(state))

    def dump(self) -> str:
        """Return the figures as text, exact however large they are."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def add(self, event: Event, payload: Payload | None) -> None:
        """Add an event that has not been added before; `payload` is None for types this version does not know."""
        self.events += 1
        if not self.first_id or event.event_id < self.first_id:
            self.first_id, self.first_us = event.event_id, moment_us(event.timestamp)
        adder = _ADDERS.get(type(payload))
        if adder is not None:
            adder(self, payload, event.event_id)

    def row(self) -> tuple[Any, ...]:
        """Return the values of `COLUMNS`; whole numbers beyond what SQLite can hold stand at its largest."""
        told = self.told or {}
        if any(self.counts) or self.told is None:
            us: list[int | None] = [total if count else None for total, count in zip(self.us, self.counts, strict=True)]
            latency, severity, errors, retriever = sum(self.us), self.severity, self.errors, self.retriever
            queries, retrievals, chunks = self.counts[0], self.counts[1], self.chunks
            sums = (self.input, self.output)
            grounding = self.nano / (_NANO * self.scores) if self.scores else None
        else:
            us = told["us"]
            latency, severity, errors, retriever = told["latency"], told["severity"], told["errors"], told["retriever"]
            queries, retrievals, chunks = told["queries"], told["retrievals"], told["chunks"]
            sums = (told["input"], told["output"])
            grounding = told["grounding"]
        started = told.get("started") or self.first_us
        rating = self.points / (_NANO * self.rated) if self.rated else None
        values = (
            started, int(self.told is not None), severity, retriever, latency, grounding, *us,
            queries, retrievals, chunks, *sums, errors, self.events, self.escalations, self.ratings, rating,
        )  # fmt: skip
        return tuple(min(value, _LARGEST) if isinstance(value, int) else value for value in values)

    def stage(self, number: int, latency_ms: float, status: str = "ok") -> None:
        """Add what every stage has."""
        self.counts[number] += 1
        self.us[number] += micros(latency_ms)
        severity = _SEVERITY[status]
        self.errors += severity == _ERROR
        self.severity = max(self.severity, severity)


def _query(figures: Figures, payload: RetrievalQueryPayload, event_id: str) -> None:
    figures.stage(0, payload.latency_ms)
    if payload.retriever_name and (not figures.retriever_at or event_id < figures.retriever_at):
        figures.retriever, figures.retriever_at = payload.retriever_name, event_id


def _retrieved(figures: Figures, payload: RetrievalResultPayload, _: str) -> None:
    figures.stage(1, payload.latency_ms, payload.status)
    figures.chunks += len(payload.chunks)


def _reranked(figures: Figures, payload: RerankPayload, _: str) -> None:
    figures.stage(2, payload.latency_ms, payload.status)


def _generated(figures: Figures, payload: RAGSpanPayload, _: str) -> None:
    figures.stage(3, payload.latency_ms, payload.status)
    figures.input += payload.prompt_tokens
    figures.output += payload.output_tokens
    if payload.grounding_score is not None:
        figures.nano += int(payload.grounding_score * _NANO + 0.5)
        figures.scores += 1


def _evaluated(figures: Figures, payload: RAGEvaluationPayload, _: str) -> None:
    figures.stage(4, payload.latency_ms)


def _summary(figures: Figures, payload: RAGSessionPayload, event_id: str) -> None:
    if payload.error_type:
        figures.severity = _ERROR
    if figures.told is not None and event_id < figures.told_at:
        return
    counts = (
        payload.total_queries, payload.retrieval_count, payload.rerank_count, payload.generation_count,
        payload.evaluation_count,
    )  # fmt: skip
    latencies = (
        payload.query_latency_ms, payload.retrieval_latency_ms, payload.rerank_latency_ms,
        payload.generation_latency_ms, payload.evaluation_latency_ms,
    )  # fmt: skip
    figures.told_at = event_id
    figures.told = {
        "started": moment_us(payload.started_at or ""),
        "us": [micros(latency) if count else None for count, latency in zip(counts, latencies, strict=True)],
        "latency": micros(payload.total_latency_ms),
        "severity": _SEVERITY[payload.status],
        "errors": payload.error_count,
        "retriever": payload.retriever_name,
        "queries": payload.total_queries,
        "retrievals": payload.retrieval_count,
        "chunks": payload.total_chunks_retrieved,
        "input": payload.total_input_tokens,
        "output": payload.total_output_tokens,
        "grounding": payload.avg_grounding_score,
    }


def _escalated(figures: Figures, _payload: EscalationPayload, _: str) -> None:
    figures.escalations += 1


def _rated(figures: Figures, payload: FeedbackSubmittedPayload, _: str) -> None:
    figures.ratings += 1
    if payload.value is not None:
        figures.points += int(payload.value * _NANO + 0.5)
        figures.rated += 1


_ADDERS: Final = cast(
    "dict[type[Any], Callable[[Figures, Any, str], None]]",
    {
        RetrievalQueryPayload: _query,
        RetrievalResultPayload: _retrieved,
        RerankPayload: _reranked,
        RAGSpanPayload: _generated,
        RAGEvaluationPayload: _evaluated,
        RAGSessionPayload: _summary,
        EscalationPayload: _escalated,
        FeedbackSubmittedPayload: _rated,
    },
)
