"""A session as the standards see it: its events, each once, in order, typed, with start and end.

Events may come in any order, twice, or not at all; a session without its summary is as good as any.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar, cast, get_args

from spanforge._hashing import is_digest
from spanforge.namespaces.event import Event
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
)
from spanforge.standards.tree.layout import laid_out
from spanforge.standards.tree.stages import Stage, read_stage

__all__ = ["Facts", "Known", "Session", "labelled"]

P = TypeVar("P", bound=Payload)

_ULID: Final = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")

Failable: TypeAlias = RetrievalResultPayload | RerankPayload | RAGSpanPayload
"""A payload that says how its stage ended."""
_FAILABLE: Final = frozenset(get_args(Failable))


@dataclass(frozen=True, slots=True)
class Facts:
    """What a session's queries say that its other stages need, so that a stage can be sent without them.

    Attributes:
        pipeline_name: Name of the pipeline.
        retriever_name: Vector store or retriever.
        namespace: Index, collection or namespace in it.
        top_k: Chunks asked for, where the application said.
        query: The query's digest with its algorithm, as `sha256:<hex>`.
        algorithm: Algorithm of the query digests.
        filters: Metadata filters.
        embedding_model: Model that embedded the query.
        embedding_dimensions: Length of the query vector.
        embedding_provider: Who serves the embedding model.
        conversation_id: The conversation that the session is a turn of, where the application named one.
    """

    pipeline_name: str = ""
    retriever_name: str = ""
    namespace: str = ""
    top_k: int | None = None
    query: str = ""
    algorithm: str = "sha256"
    filters: Mapping[str, object] = field(default_factory=dict[str, object])
    embedding_model: str = ""
    embedding_dimensions: int | None = None
    embedding_provider: str = ""
    conversation_id: str = ""

    @classmethod
    def of(cls, query: RetrievalQueryPayload) -> Self:
        """Take the facts from a query."""
        algorithm = query.query_hash_alg or "sha256"
        return cls(
            pipeline_name=query.pipeline_name or "",
            retriever_name=query.retriever_name,
            namespace=query.namespace,
            top_k=None if "top_k" in (query.assumed or ()) else query.top_k,
            query=labelled(algorithm, query.query_hash),
            algorithm=algorithm,
            filters=query.filters,
            embedding_model=query.embedding_model,
            embedding_dimensions=query.embedding_dimensions,
            embedding_provider=query.embedding_provider or "",
            conversation_id=query.conversation_id or "",
        )


class Known(NamedTuple):
    """What earlier events said of a session, so that the rest of it can be sent without them.

    Attributes:
        facts: The facts of a query of it.
        began_ns: When its earliest stage began, nanoseconds since the epoch.
        last: The latest stage that says how it ended.
    """

    facts: Facts | None = None
    began_ns: int | None = None
    last: Failable | None = None


def labelled(algorithm: str, digest: str) -> str:
    """Return a digest with its algorithm in front; empty where there is none, or where it is not a digest."""
    if not is_digest(digest):
        return ""
    return digest if ":" in digest else f"{algorithm}:{digest}"


class Session:
    """The events of one session.

    Args:
        events: Events with the same session id, in any order, repeats allowed.
        known: What events said that were seen before and are not among these.

    Attributes:
        session_id: The session they belong to; empty where there is no event.
        stages: Every event that could be read, once, in order of emission, with the moments at which it ran.
        unread: How many events were of an unknown type, or could not be read.
    """

    def __init__(self, events: Iterable[Event], known: Known | None = None) -> None:
        distinct = {event.event_id: event for event in events}
        ordered = [distinct[event_id] for event_id in sorted(distinct)]
        self.session_id = ordered[0].session_id if ordered else ""
        self.stages = laid_out([stage for event in ordered if (stage := read_stage(event))])
        self.unread = len(ordered) - len(self.stages)
        self._before = known or Known()
        kinds: dict[type[Payload], list[Stage[Any]]] = {}
        for stage in self.stages:
            kinds.setdefault(type(stage.payload), []).append(stage)
        self._kinds = {kind: tuple(found) for kind, found in kinds.items()}

    def of(self, kind: type[P]) -> tuple[Stage[P], ...]:
        """Return the stages with this class of payload."""
        return self._kinds.get(kind, ())

    @property
    def queries(self) -> tuple[Stage[RetrievalQueryPayload], ...]:
        """The queries."""
        return self.of(RetrievalQueryPayload)

    @property
    def retrievals(self) -> tuple[Stage[RetrievalResultPayload], ...]:
        """The retrievals."""
        return self.of(RetrievalResultPayload)

    @property
    def reranks(self) -> tuple[Stage[RerankPayload], ...]:
        """The reranks."""
        return self.of(RerankPayload)

    @property
    def generations(self) -> tuple[Stage[RAGSpanPayload], ...]:
        """The generations."""
        return self.of(RAGSpanPayload)

    @property
    def evaluations(self) -> tuple[Stage[RAGEvaluationPayload], ...]:
        """The evaluations."""
        return self.of(RAGEvaluationPayload)

    @property
    def summary(self) -> Stage[RAGSessionPayload] | None:
        """The session's own event; the last one, where several processes have sent theirs."""
        found = self.of(RAGSessionPayload)
        return found[-1] if found else None

    @cached_property
    def facts(self) -> Facts:
        """The facts of the first query, else those known from before, else what the summary repeats."""
        if self.queries:
            return self._timeline[1][0]
        if self._before.facts is not None:
            return self._before.facts
        if self.summary is None:
            return Facts()
        said = self.summary.payload
        return Facts(retriever_name=said.retriever_name, conversation_id=said.conversation_id or "")

    def facts_at(self, event_id: str) -> Facts:
        """Return the facts that held when an event was made: those of the latest query before it."""
        ids, facts = self._timeline
        position = bisect_right(ids, event_id)
        return facts[position - 1] if position else self.facts

    @cached_property
    def _timeline(self) -> tuple[list[str], list[Facts]]:
        return [query.event.event_id for query in self.queries], [Facts.of(q.payload) for q in self.queries]

    @cached_property
    def known(self) -> Known:
        """What is known of the session, these events included."""
        before = self._before
        starts = [stage.start_ns for stage in self.stages if type(stage.payload) is not RAGSessionPayload]
        last = next((stage.payload for stage in reversed(self.stages) if type(stage.payload) in _FAILABLE), before.last)
        return Known(
            facts=self.facts if self.queries else before.facts,
            began_ns=min((moment for moment in (before.began_ns, *starts) if moment is not None), default=None),
            last=cast("Failable | None", last),
        )

    @cached_property
    def conversation_id(self) -> str:
        """The conversation that the session is a turn of; empty where the application named neither."""
        return self.facts.conversation_id or (self.session_id if self.named_by_caller else "")

    @property
    def named_by_caller(self) -> bool:
        """True where the application chose the session id: ids made here are ULIDs."""
        return bool(self.session_id) and _ULID.fullmatch(self.session_id) is None

    @property
    def reached(self) -> str:
        """The further of `generate` and `evaluate` that the session came to; `query` before either.

        A root that says `retrieve` or `rerank` is reported as one more search or rerank.
        """
        if self.evaluations:
            return "evaluate"
        return "generate" if self.generations else "query"
