"""A session as the conventions see it: its events, each once, in order, typed, with start and end.

Events may come in any order, twice, or not at all; a session without its summary is as good as any.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, Self, TypeVar

from spanforge import _clock, _ids
from spanforge._hashing import is_digest
from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces import PAYLOADS
from spanforge.namespaces._payload import Payload
from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
)

__all__ = ["Facts", "Session", "Stage", "by_session", "labelled"]

P = TypeVar("P", bound=Payload)
P_co = TypeVar("P_co", bound=Payload, covariant=True)

_MAX_NS: Final = (1 << 63) - 1
_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a session's queries say that its other stages need, so that a stage can be sent without them.

    Attributes:
        pipeline: Name of the pipeline.
        database: Vector store or retriever.
        index: Index, collection or namespace in it.
        top_k: Chunks asked for.
        query: The query's digest with its algorithm, as `sha256:<hex>`.
        algorithm: Algorithm of the query digests.
        filters: Metadata filters.
        embedding_model: Model that embedded the query.
        embedding_dimensions: Length of the query vector.
    """

    pipeline: str = ""
    database: str = ""
    index: str = ""
    top_k: int | None = None
    query: str = ""
    algorithm: str = "sha256"
    filters: Mapping[str, object] = field(default_factory=dict[str, object])
    embedding_model: str = ""
    embedding_dimensions: int | None = None

    @classmethod
    def of(cls, query: RetrievalQueryPayload) -> Self:
        """Take the facts from a query."""
        algorithm = query.query_hash_alg or "sha256"
        return cls(
            pipeline=query.pipeline_name or "",
            database=query.retriever_name,
            index=query.namespace,
            top_k=query.top_k,
            query=labelled(algorithm, query.query_hash),
            algorithm=algorithm,
            filters=query.filters,
            embedding_model=query.embedding_model,
            embedding_dimensions=query.embedding_dimensions,
        )


def labelled(algorithm: str, digest: str) -> str:
    """Return a digest with its algorithm in front; empty where there is none, or where it is not a digest."""
    if not is_digest(digest):
        return ""
    return digest if ":" in digest else f"{algorithm}:{digest}"


@dataclass(frozen=True, slots=True)
class Stage(Generic[P_co]):
    """One event, read.

    Attributes:
        event: The event as it is stored.
        payload: Its payload.
        start_ns: When the stage began, nanoseconds since the epoch.
        end_ns: When it ended; never before it began.
    """

    event: Event
    payload: P_co
    start_ns: int
    end_ns: int


def _end_ns(event: Event) -> int:
    """Return when the event was made; its id says so where its timestamp cannot be read."""
    try:
        moment = _clock.parse_timestamp(event.timestamp)
    except ValueError:
        moment = ((_ids.decode(event.event_id) or 0) >> 80) * 1_000_000
    return min(max(moment, 0), _MAX_NS)


def _read(event: Event) -> Stage[Payload] | None:
    """Return the event with its typed payload; None for what this version does not know or cannot read."""
    kind = PAYLOADS.get(event.event_type)
    if kind is None:
        return None
    try:
        payload = kind.from_dict(event.payload)
    except (InvalidPayloadError, TypeError):
        # TypeError: a required field is missing; it names the field and nothing else.
        return None
    end = _end_ns(event)
    # A stage's event is made when the stage ends.
    lasted = int(min(getattr(payload, "latency_ms", 0.0) * 1e6, float(_MAX_NS)))
    return Stage(event, payload, max(0, end - lasted), end)


class Session:
    """The events of one session.

    Args:
        events: Events with the same session id, in any order, repeats allowed.
        known: Facts of the session from events that were seen before and are not among these.

    Attributes:
        session_id: The session they belong to; empty where there is no event.
        stages: Every event that could be read, once, in order of emission.
        unread: How many events were of an unknown type, or could not be read.
    """

    def __init__(self, events: Iterable[Event], known: Facts | None = None) -> None:
        distinct = {event.event_id: event for event in events}
        ordered = [distinct[event_id] for event_id in sorted(distinct)]
        self.session_id = ordered[0].session_id if ordered else ""
        self.stages: tuple[Stage[Payload], ...] = tuple(stage for event in ordered if (stage := _read(event)))
        self.unread = len(ordered) - len(self.stages)
        self._known = known

    def of(self, kind: type[P]) -> tuple[Stage[P], ...]:
        """Return the stages with this class of payload."""
        return tuple(stage for stage in self.stages if isinstance(stage.payload, kind))  # type: ignore[misc]  narrowed by the filter

    @cached_property
    def queries(self) -> tuple[Stage[RetrievalQueryPayload], ...]:
        """The queries."""
        return self.of(RetrievalQueryPayload)

    @cached_property
    def retrievals(self) -> tuple[Stage[RetrievalResultPayload], ...]:
        """The retrievals."""
        return self.of(RetrievalResultPayload)

    @cached_property
    def reranks(self) -> tuple[Stage[RerankPayload], ...]:
        """The reranks."""
        return self.of(RerankPayload)

    @cached_property
    def generations(self) -> tuple[Stage[RAGSpanPayload], ...]:
        """The generations."""
        return self.of(RAGSpanPayload)

    @cached_property
    def evaluations(self) -> tuple[Stage[RAGEvaluationPayload], ...]:
        """The evaluations."""
        return self.of(RAGEvaluationPayload)

    @cached_property
    def summary(self) -> Stage[RAGSessionPayload] | None:
        """The session's own event; the last one, where an ended session went on."""
        found = self.of(RAGSessionPayload)
        return found[-1] if found else None

    @cached_property
    def facts(self) -> Facts:
        """The facts of the first query, else those known from before, else what the summary repeats."""
        if self.queries:
            return Facts.of(self.queries[0].payload)
        if self._known is not None:
            return self._known
        return Facts(database=self.summary.payload.retriever_name if self.summary else "")

    def facts_at(self, event_id: str) -> Facts:
        """Return the facts that held when an event was made: those of the latest query before it."""
        ids, facts = self._timeline
        position = bisect_right(ids, event_id)
        return facts[position - 1] if position else self.facts

    @cached_property
    def _timeline(self) -> tuple[list[str], list[Facts]]:
        return [query.event.event_id for query in self.queries], [Facts.of(q.payload) for q in self.queries]

    @property
    def named_by_caller(self) -> bool:
        """True where the application chose the session id: ids made here are ULIDs."""
        return bool(self.session_id) and _ULID.fullmatch(self.session_id) is None

    @property
    def reached(self) -> str:
        """The furthest of `retrieve`, `rerank`, `generate` and `evaluate` that the session came to."""
        if self.evaluations:
            return "evaluate"
        if self.generations:
            return "generate"
        return "rerank" if self.reranks else "retrieve"


def by_session(events: Sequence[Event]) -> dict[str, list[Event]]:
    """Group events by session id, in order of first appearance."""
    groups: dict[str, list[Event]] = {}
    for event in events:
        groups.setdefault(event.session_id, []).append(event)
    return groups
