"""The fold from stage events to a session summary.

`Totals` adds up; it is the only place that knows how. The live table feeds it event by event, stores keep its state and
go on from there, and parts that were added up apart are merged. `SessionAggregate` remembers whole events besides, so
that they may be repeated in any way. All come to the same figures: latencies are summed as integer microseconds,
scores and costs as integers of 1e-9, and divided only at the end (adr/0003).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from heapq import nsmallest
from typing import Any, Final, Self

from spanforge.namespaces.event import Event
from spanforge.namespaces.payload import LARGEST_SUM
from spanforge.namespaces.retrieval import SEVERITY, RAGSessionPayload
from spanforge.namespaces.stages import EVALUATED, GENERATED, QUERY, RERANKED, RETRIEVED, SESSION

__all__ = ["DEFAULT_ID_CAP", "Room", "SessionAggregate", "Totals", "microseconds"]

DEFAULT_ID_CAP: Final = 10_000
_NANO: Final = 1_000_000_000
_STATUS: Final = ("ok", "partial", "error")
_ERROR: Final = 2


def microseconds(milliseconds: float) -> int:
    """Return a latency, which is never negative, as the integer the fold sums.

    Half a microsecond rounds up: a rule that SQL engines can follow to the digit.
    """
    return int(milliseconds * 1000 + 0.5)


class Room:
    """How many more chunk ids may be remembered, by all the sessions that share it.

    Attributes:
        left: Ids; below zero once the limit was lowered.
    """

    __slots__ = ("left",)

    def __init__(self, left: int = sys.maxsize) -> None:
        self.left = left


class Totals:
    """Running sums over the distinct events of one session. Adding and merging are commutative and associative.

    Args:
        id_cap: Distinct chunk ids remembered of each kind: the smallest, so that the cap commutes too.
        room: Shared with other sessions.
    """

    # Class attributes, not slots: most stay at their start in most sessions, and what is never set costs neither the
    # time to set it nor the room to keep it, in every open session.
    queries = retrievals = reranks = generations = evaluations = 0
    query_us = retrieval_us = rerank_us = generation_us = evaluation_us = 0
    chunks_retrieved = prompt_tokens = output_tokens = 0
    grounding_sum = grounding_count = cost_sum = cost_count = 0
    grounding_min = _NANO
    errors = severity = 0
    retriever = error_type = ""
    truncated = False
    retriever_at: Any = None
    # Dicts as sets: for a handful of ids they take half the room.
    retrieved_ids: dict[str, None] | None = None
    used_ids: dict[str, None] | None = None
    _id_cap = DEFAULT_ID_CAP
    _room = Room()

    def __init__(self, id_cap: int = DEFAULT_ID_CAP, room: Room | None = None) -> None:
        if id_cap != DEFAULT_ID_CAP:
            self._id_cap = id_cap
        if room is not None:
            self._room = room

    def add(self, event_type: str, payload: Mapping[str, Any], order: Any) -> None:
        """Add one event.

        Args:
            event_type: One of the `llm.rag.*` types; others add nothing.
            payload: Its payload as JSON values.
            order: The event's id; of all retrievers named, the one with the lowest id is the session's.
        """
        adder = _ADDERS.get(event_type)
        if adder is not None:
            adder(self, payload, order)

    def add_reranked(self, payload: Mapping[str, Any], _order: Any) -> None:
        """Add a `llm.rag.reranked`."""
        self.reranks += 1
        self.rerank_us += microseconds(payload.get("latency_ms") or 0.0)
        self._status(payload.get("status", "ok"))

    def add_evaluated(self, payload: Mapping[str, Any], _order: Any) -> None:
        """Add a `llm.rag.evaluated`."""
        self.evaluations += 1
        self.evaluation_us += microseconds(payload.get("latency_ms") or 0.0)

    def add_summary(self, payload: Mapping[str, Any], _order: Any) -> None:
        """Add the one fact a summary has of its own: an exception that left the scope between two stages."""
        if error_type := payload.get("error_type"):
            self.error_type = min(self.error_type or error_type, error_type)
            self.severity = _ERROR

    def add_query(self, payload: Mapping[str, Any], order: Any) -> None:
        """Add a `llm.rag.query`."""
        self.queries += 1
        self.query_us += microseconds(payload.get("latency_ms") or 0.0)
        name = payload.get("retriever_name")
        if name and (self.retriever_at is None or order < self.retriever_at):
            self.retriever, self.retriever_at = name, order

    def add_retrieved(self, payload: Mapping[str, Any], _order: Any) -> None:
        """Add a `llm.rag.retrieved`."""
        self.retrievals += 1
        self.retrieval_us += microseconds(payload.get("latency_ms") or 0.0)
        chunks = payload.get("chunks", ())
        self.chunks_retrieved += len(chunks)
        if chunks:
            ids = {chunk["chunk_id"]: None for chunk in chunks}
            self.retrieved_ids = self._united(self.retrieved_ids, ids)
        if payload.get("status", "ok") != "ok":
            self._status(payload["status"])

    def add_generated(self, payload: Mapping[str, Any], _order: Any) -> None:
        """Add a `llm.rag.generated`."""
        self.generations += 1
        self.generation_us += microseconds(payload.get("latency_ms") or 0.0)
        self.prompt_tokens += payload.get("prompt_tokens") or 0
        self.output_tokens += payload.get("output_tokens") or 0
        cost = payload.get("cost_usd")
        if cost is not None:
            self.cost_sum += int(cost * _NANO + 0.5)
            self.cost_count += 1
        used = payload.get("chunk_ids_used")
        if used:
            self.used_ids = self._united(self.used_ids, dict.fromkeys(used))
        score = payload.get("grounding_score")
        if score is not None:
            nano = int(score * _NANO + 0.5)
            self.grounding_sum += nano
            self.grounding_count += 1
            if nano < self.grounding_min:  # noqa: PLR1730  `min` takes three times as long, in the caller's thread
                self.grounding_min = nano
        if payload.get("status", "ok") != "ok":
            self._status(payload["status"])

    def merge(self, other: Totals) -> None:
        """Add what another has seen, of events that this one has not."""
        for name in _SUMS & vars(other).keys():
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.severity = max(self.severity, other.severity)
        self.grounding_min = min(self.grounding_min, other.grounding_min)
        self.truncated |= other.truncated
        self.error_type = min(filter(None, (self.error_type, other.error_type)), default="")
        if other.retriever and (not self.retriever or other.retriever_at < self.retriever_at):
            self.retriever, self.retriever_at = other.retriever, other.retriever_at
        if other.retrieved_ids:
            self.retrieved_ids = self._united(self.retrieved_ids, dict(other.retrieved_ids))
        if other.used_ids:
            self.used_ids = self._united(self.used_ids, dict(other.used_ids))

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON values, without what is still at its start."""
        ids = {name: capped for name in _ID_SETS if (capped := self._capped(getattr(self, name)))}
        # What was never set is not in the instance.
        return ids | {name: value for name, value in vars(self).items() if _START.get(name, value) != value}

    @classmethod
    def load(cls, state: Mapping[str, Any], id_cap: int = DEFAULT_ID_CAP) -> Self:
        """Return totals that go on from what `dump` gave; fields that a newer version added are left out."""
        totals = cls(id_cap)
        vars(totals).update({name: value for name, value in state.items() if name in _START})
        for name in _ID_SETS & state.keys():
            setattr(totals, name, dict.fromkeys(state[name]))
        return totals

    def _united(self, known: dict[str, None] | None, new: dict[str, None]) -> dict[str, None]:
        """Return both sets of ids in one, cut now and then: what is cut off can never be among the smallest."""
        before = 0
        if known is not None:
            before = len(known)
            known.update(new)
            new = known
        room = self._room
        if len(new) > self._id_cap + (self._id_cap >> 2) or len(new) - before > room.left:
            self.truncated = True
            new = dict.fromkeys(nsmallest(min(self._id_cap, before + max(0, room.left)), new))
        room.left -= len(new) - before
        return new

    def _capped(self, ids: dict[str, None] | None) -> list[str]:
        """Return the smallest ids in order, as many as are remembered, and note whether there are more."""
        if ids is None:
            return []
        self.truncated |= len(ids) > self._id_cap
        return sorted(ids)[: self._id_cap]

    def _status(self, status: str) -> None:
        severity = SEVERITY.get(status, _ERROR)
        if severity == _ERROR:
            self.errors += 1
        self.severity = max(self.severity, severity)

    @property
    def ids(self) -> int:
        """Chunk ids remembered."""
        return len(self.retrieved_ids or ()) + len(self.used_ids or ())

    def summary(self, session_id: str) -> dict[str, Any]:
        """Return every field of `RAGSessionPayload` that the fold determines; those of time and end are None."""
        count, retrieved, used = self.grounding_count, self._capped(self.retrieved_ids), self._capped(self.used_ids)
        # A sum of which a part is not known is not known.
        priced = self.cost_count and self.cost_count == self.generations
        total_us = self.query_us + self.retrieval_us + self.rerank_us + self.generation_us + self.evaluation_us
        return {
            "session_id": session_id,
            "total_queries": self.queries,
            "total_chunks_used": len(used),
            "total_input_tokens": min(self.prompt_tokens, LARGEST_SUM),
            "total_output_tokens": min(self.output_tokens, LARGEST_SUM),
            "avg_grounding_score": self.grounding_sum / (_NANO * count) if count else None,
            "total_latency_ms": total_us / 1000,
            "status": _STATUS[self.severity],
            "retriever_name": self.retriever,
            "total_chunks_retrieved": self.chunks_retrieved,
            "unique_chunk_ids": tuple(retrieved),
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
            "conversation_id": None,
            "total_cost_usd": self.cost_sum / _NANO if priced else None,
        }


_ADDERS: Final[dict[str, Callable[[Totals, Mapping[str, Any], Any], None]]] = {
    QUERY: Totals.add_query,
    RETRIEVED: Totals.add_retrieved,
    RERANKED: Totals.add_reranked,
    GENERATED: Totals.add_generated,
    EVALUATED: Totals.add_evaluated,
    SESSION: Totals.add_summary,
}
_SUMS: Final = frozenset({
    "queries", "retrievals", "reranks", "generations", "evaluations", "query_us", "retrieval_us", "rerank_us",
    "generation_us", "evaluation_us", "chunks_retrieved", "prompt_tokens", "output_tokens", "grounding_sum",
    "grounding_count", "cost_sum", "cost_count", "errors",
})  # fmt: skip
_ID_SETS: Final = frozenset({"retrieved_ids", "used_ids"})
_START: Final = {
    name: getattr(Totals, name)
    for name in (*_SUMS, "severity", "grounding_min", "truncated", "error_type", "retriever", "retriever_at")
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
