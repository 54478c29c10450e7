"""The fold from stage events to a session summary.

`Totals` adds up; it is the only place that knows how. The live table feeds it event by event. `SessionAggregate`
feeds it from stored events, in any order, split and repeated in any way, and comes to the same figures: latencies
are summed as integer microseconds, scores as integers of 1e-9, and divided only at the end (adr/0003).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import RAGSessionPayload

__all__ = ["DEFAULT_ID_CAP", "SessionAggregate", "Totals", "microseconds"]

DEFAULT_ID_CAP: Final = 10_000
_NANO: Final = 1_000_000_000
_SEVERITY: Final = {"ok": 0, "partial": 1, "error": 2, "timeout": 2}
_STATUS: Final = ("ok", "partial", "error")
_ERROR: Final = 2


def microseconds(milliseconds: float) -> int:
    """Return a latency as the integer the fold sums."""
    return round(milliseconds * 1000)


class Totals:
    """Running sums over the distinct events of one session. Adding is commutative and associative.

    Args:
        id_cap: Distinct chunk ids remembered of each kind.
    """

    __slots__ = (
        "_id_cap",
        "_retriever_at",
        "chunks_retrieved",
        "error_type",
        "errors",
        "evaluation_us",
        "evaluations",
        "generation_us",
        "generations",
        "grounding_count",
        "grounding_min",
        "grounding_sum",
        "output_tokens",
        "prompt_tokens",
        "queries",
        "query_us",
        "rerank_us",
        "reranks",
        "retrieval_us",
        "retrievals",
        "retrieved_ids",
        "retriever",
        "severity",
        "truncated",
        "used_ids",
    )

    def __init__(self, id_cap: int = DEFAULT_ID_CAP) -> None:
        self._id_cap = id_cap
        self._retriever_at: Any = None
        self.retriever = ""
        self.error_type = ""
        self.queries = self.retrievals = self.reranks = self.generations = self.evaluations = 0
        self.query_us = self.retrieval_us = self.rerank_us = self.generation_us = self.evaluation_us = 0
        self.chunks_retrieved = self.prompt_tokens = self.output_tokens = 0
        self.grounding_sum = self.grounding_count = 0
        self.grounding_min = _NANO
        self.errors = self.severity = 0
        self.truncated = False
        # Dicts as sets that keep little memory for a handful of ids; absent until there is one.
        self.retrieved_ids: dict[str, None] | None = None
        self.used_ids: dict[str, None] | None = None

    def add(self, event_type: str, payload: Mapping[str, Any], order: Any) -> None:
        """Add one event.

        Args:
            event_type: One of the `llm.rag.*` types; others add nothing.
            payload: Its payload as JSON values.
            order: The event's id; of all retrievers named, the one with the lowest id is the session's.
        """
        if event_type == "llm.rag.query":
            self._query(payload, order)
        elif event_type == "llm.rag.retrieved":
            self._retrieved(payload)
        elif event_type == "llm.rag.generated":
            self._generated(payload)
        elif event_type == "llm.rag.reranked":
            self.reranks += 1
            self.rerank_us += microseconds(payload.get("latency_ms", 0.0))
            self._status(payload.get("status", "ok"))
        elif event_type == "llm.rag.evaluated":
            self.evaluations += 1
            self.evaluation_us += microseconds(payload.get("latency_ms", 0.0))
        elif event_type == "llm.rag.session" and payload.get("error_type"):
            # The one fact a summary has of its own: an exception that left the scope between two stages.
            self.error_type = min(filter(None, (self.error_type, payload["error_type"])))
            self.severity = _ERROR

    def _query(self, payload: Mapping[str, Any], order: Any) -> None:
        self.queries += 1
        self.query_us += microseconds(payload.get("latency_ms", 0.0))
        name = payload.get("retriever_name")
        if name and (self._retriever_at is None or order < self._retriever_at):
            self.retriever, self._retriever_at = name, order

    def _retrieved(self, payload: Mapping[str, Any]) -> None:
        self.retrievals += 1
        self.retrieval_us += microseconds(payload.get("latency_ms", 0.0))
        chunks = payload.get("chunks", ())
        self.chunks_retrieved += len(chunks)
        if chunks:
            if self.retrieved_ids is None:
                self.retrieved_ids = {}
            self._remember(self.retrieved_ids, [chunk["chunk_id"] for chunk in chunks])
        self._status(payload.get("status", "ok"))

    def _generated(self, payload: Mapping[str, Any]) -> None:
        self.generations += 1
        self.generation_us += microseconds(payload.get("latency_ms", 0.0))
        self.prompt_tokens += payload.get("prompt_tokens", 0)
        self.output_tokens += payload.get("output_tokens", 0)
        used = payload.get("chunk_ids_used")
        if used:
            if self.used_ids is None:
                self.used_ids = {}
            self._remember(self.used_ids, used)
        score = payload.get("grounding_score")
        if score is not None:
            nano = round(score * _NANO)
            self.grounding_sum += nano
            self.grounding_count += 1
            self.grounding_min = min(self.grounding_min, nano)
        self._status(payload.get("status", "ok"))

    def _remember(self, known: dict[str, None], ids: Iterable[str]) -> None:
        known.update(dict.fromkeys(ids))
        if len(known) > self._id_cap:
            self.truncated = True
            for extra in list(known)[self._id_cap :]:
                del known[extra]

    def _status(self, status: str) -> None:
        severity = _SEVERITY.get(status, _ERROR)
        if severity == _ERROR:
            self.errors += 1
        self.severity = max(self.severity, severity)

    def summary(self, session_id: str) -> dict[str, Any]:
        """Return every field of `RAGSessionPayload` that the fold determines; those of time and end are None."""
        count = self.grounding_count
        total_us = self.query_us + self.retrieval_us + self.rerank_us + self.generation_us + self.evaluation_us
        return {
            "session_id": session_id,
            "total_queries": self.queries,
            "total_chunks_used": len(self.used_ids or ()),
            "total_input_tokens": self.prompt_tokens,
            "total_output_tokens": self.output_tokens,
            "avg_grounding_score": self.grounding_sum / (_NANO * count) if count else None,
            "total_latency_ms": total_us / 1000,
            "status": _STATUS[self.severity],
            "retriever_name": self.retriever,
            "total_chunks_retrieved": self.chunks_retrieved,
            "unique_chunk_ids": tuple(sorted(self.retrieved_ids)) if self.retrieved_ids else (),
            "chunk_ids_truncated": self.truncated,
            "min_grounding_score": self.grounding_min / _NANO if count else None,
            "grounding_count": count,
            "duration_ms": None,
            "retrieval_count": self.retrievals,
            "rerank_count": self.reranks,
            "generation_count": self.generations,
            "evaluation_count": self.evaluations,
            "query_latency_ms": self.query_us / 1000,
            "retrieval_latency_ms": self.retrieval_us / 1000,
            "rerank_latency_ms": self.rerank_us / 1000,
            "generation_latency_ms": self.generation_us / 1000,
            "evaluation_latency_ms": self.evaluation_us / 1000,
            "error_count": self.errors,
            "started_at": None,
            "ended_at": None,
            "end_reason": None,
            "error_type": self.error_type or None,
            "partial_view": False,
        }


class SessionAggregate:
    """A commutative monoid over the events of one session: `empty()`, `of(event)`, `merge`.

    It remembers events by id, so that one that was stored twice counts once.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
        self._parts = parts

    @classmethod
    def empty(cls) -> Self:
        """Return the neutral element."""
        return cls({})

    @classmethod
    def of(cls, *events: Event) -> Self:
        """Return the aggregate of some events of one session."""
        return cls({event.event_id: (event.event_type, event.payload) for event in events})

    def merge(self, other: SessionAggregate) -> SessionAggregate:
        """Return the aggregate of both; the order does not matter, nor do events that both have seen."""
        return SessionAggregate({**self._parts, **other._parts})

    def summary(self, session_id: str, *, id_cap: int = DEFAULT_ID_CAP) -> RAGSessionPayload:
        """Return the summary; what stages do not carry (times, end reason) is absent from it."""
        totals = Totals(id_cap)
        for event_id, (event_type, payload) in self._parts.items():
            totals.add(event_type, payload, event_id)
        return RAGSessionPayload.trusted(totals.summary(session_id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SessionAggregate) and dict(self._parts) == dict(other._parts)

    def __hash__(self) -> int:
        return hash(frozenset(self._parts))

    def __len__(self) -> int:
        return len(self._parts)
