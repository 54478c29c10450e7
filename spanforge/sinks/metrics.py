"""Counts and histograms of what passes by, in memory: a sink to be scraped.

Labels are few and known beforehand; a session id, a digest or a model's name is never one.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spanforge.namespaces.event import Event
from spanforge.sinks.base import BaseSink

__all__ = ["GROUNDING_BOUNDS", "LATENCY_BOUNDS", "Distribution", "MetricsSink", "Totals"]

LATENCY_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
GROUNDING_BOUNDS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

_STAGES: Final[Mapping[str, str]] = {
    "llm.rag.query": "query",
    "llm.rag.retrieved": "retrieval",
    "llm.rag.reranked": "rerank",
    "llm.rag.generated": "generation",
    "llm.rag.evaluated": "evaluation",
}
_ERRORS: Final = frozenset({"error", "timeout"})
_STATUSES: Final = frozenset({"ok", "partial", "error"})


@dataclass(slots=True)
class Distribution:
    """How measurements are spread.

    Attributes:
        bounds: Upper bounds of the buckets, each included in its bucket.
        counts: How many fell into each bucket; one more at the end, for those above all bounds.
        total: Their sum.
    """

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list[int])
    total: float = 0.0

    def add(self, value: float) -> None:
        """Add one measurement."""
        self.counts = self.counts or [0] * (len(self.bounds) + 1)
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def copy(self) -> Distribution:
        """Return one that does not change any more."""
        return Distribution(self.bounds, list(self.counts), self.total)


@dataclass(frozen=True, slots=True)
class Totals:
    """What passed by so far.

    Attributes:
        latency: Duration of stages in seconds, by stage.
        grounding: Grounding scores.
        tokens: Tokens by direction, `input` and `output`.
        errors: Stages that failed, by stage and status.
        sessions: Sessions that ended, by status.
    """

    latency: Mapping[str, Distribution]
    grounding: Distribution
    tokens: Mapping[str, int]
    errors: Mapping[tuple[str, str], int]
    sessions: Mapping[str, int]


class MetricsSink(BaseSink):
    """Keeps totals of the events it is given; `spanforge.sdk.metrics` gives them out.

    Args:
        name: What the ledger calls it.
    """

    def __init__(self, name: str = "metrics") -> None:
        self.name = name
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._latency = {stage: Distribution(LATENCY_BOUNDS) for stage in _STAGES.values()}
        self._grounding = Distribution(GROUNDING_BOUNDS)
        self._tokens: Counter[str] = Counter(input=0, output=0)
        self._errors: Counter[tuple[str, str]] = Counter()
        self._sessions: Counter[str] = Counter()

    def write(self, events: Sequence[Event], /) -> None:
        """Count the events."""
        with self._lock:
            for event in events:
                self._count(event.event_type, event.payload)

    def totals(self) -> Totals:
        """Return what passed by so far."""
        with self._lock:
            return Totals(
                latency={stage: found.copy() for stage, found in self._latency.items()},
                grounding=self._grounding.copy(),
                tokens=dict(self._tokens),
                errors=dict(self._errors),
                sessions=dict(self._sessions),
            )

    def after_fork(self) -> None:
        """Begin at zero in a child, with a lock of its own."""
        self._lock = threading.Lock()
        self._reset()

    def _count(self, event_type: str, payload: Mapping[str, Any]) -> None:
        status = payload.get("status", "ok")
        stage = _STAGES.get(event_type)
        if stage is not None:
            self._latency[stage].add(payload.get("latency_ms", 0.0) / 1000)
            if status in _ERRORS:
                self._errors[stage, status] += 1
        if event_type == "llm.rag.generated":
            self._tokens["input"] += payload.get("prompt_tokens", 0)
            self._tokens["output"] += payload.get("output_tokens", 0)
            score = payload.get("grounding_score")
            if score is not None:
                self._grounding.add(score)
        elif event_type == "llm.rag.session" and status in _STATUSES:
            self._sessions[status] += 1
