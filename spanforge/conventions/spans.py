"""A session as a tree of spans, before any standard has named anything on it.

`nodes` builds the tree once; each standard adds its attributes by a pure function of one node. Ids and times
are those of the events, so that sending a session again makes no second span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from spanforge import _clock, _ids
from spanforge._text import well_formed
from spanforge.conventions._table import UNKNOWN, Attributes, Row, collect
from spanforge.conventions.session import Facts, Session, Stage
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
    RetrievedChunk,
)

__all__ = [
    "MAX_DOCUMENTS",
    "Contribution",
    "Document",
    "Node",
    "Role",
    "Span",
    "SpanEvent",
    "Tables",
    "error_type",
    "nodes",
    "read",
    "spans",
]

Role: TypeAlias = Literal[
    "session",
    "query",
    "embeddings",
    "retrieval",
    "rerank",
    "generation",
    "evaluation",
    "escalation",
    "feedback",
]
Kind: TypeAlias = Literal["INTERNAL", "CLIENT"]
Status: TypeAlias = Literal["unset", "ok", "error"]

MAX_DOCUMENTS: Final = 128
"""Documents that one span carries: OpenTelemetry's own default limit for what hangs on a span."""

P = TypeVar("P", bound=Payload)
P_co = TypeVar("P_co", bound=Payload, covariant=True)

_TRACE_ID: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")
_SPAN_ID: Final = re.compile(r"(?!0{16})[0-9a-f]{16}")
_CODE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")


@dataclass(frozen=True, slots=True)
class Node(Generic[P_co]):
    """One span of a session, unnamed by any standard.

    Attributes:
        role: What it stands for.
        name: Its name (AITF RAG_CONTEXT and OpenTelemetry GenAI, which agree where both have one).
        kind: `CLIENT` where another system does the work.
        trace_id: 32 hex digits.
        span_id: 16 hex digits.
        parent_span_id: 16 hex digits; empty for a root.
        start_ns: Nanoseconds since the epoch.
        end_ns: Likewise, never before the start.
        status: `error` for errors and time-outs, `unset` for partial results.
        payload: The payload of the event it comes from.
        facts: What held when the event was made.
        session: The session around it.
        event: The event it comes from.
    """

    role: Role
    name: str
    kind: Kind
    trace_id: str
    span_id: str
    parent_span_id: str
    start_ns: int
    end_ns: int
    status: Status
    payload: P_co
    facts: Facts
    session: Session
    event: Event


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened at one moment of a span."""

    name: str
    time_ns: int
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Span:
    """A node with the attributes that the standards gave it (see `Node` for the other fields).

    Attributes:
        error: What is kept of the error, where there was one.
        events: Span events, in order.
        dropped_events: Events beyond `MAX_DOCUMENTS`, left out.
        event_id: The event it comes from.
    """

    name: str
    kind: Kind
    trace_id: str
    span_id: str
    parent_span_id: str
    start_ns: int
    end_ns: int
    status: Status
    error: str
    attributes: Attributes
    events: tuple[SpanEvent, ...] = field(default=())
    dropped_events: int = 0
    event_id: str = ""


Tables: TypeAlias = Mapping[Role, tuple[Row[Any], ...]]
"""A standard's rows for each kind of span."""

Contribution: TypeAlias = Callable[[Node[Payload]], Attributes]
Document: TypeAlias = Callable[[RetrievedChunk], Attributes]


def read(tables: Tables, node: Node[Payload]) -> Attributes:
    """Return what a standard's tables say of a node."""
    return collect(tables.get(node.role, ()), node)


def error_type(node: Node[Payload]) -> str:
    """Return a low-cardinality name of a node's error; empty where it did not fail.

    `timeout` for time-outs; the class or code that was recorded; `_OTHER` where only a digest was kept.
    """
    if node.status != "error":
        return ""
    if getattr(node.payload, "status", "") == "timeout":
        return "timeout"
    recorded = _error(node.payload)
    return recorded if _CODE.fullmatch(recorded) else "_OTHER"


def _error(payload: Payload) -> str:
    return str(getattr(payload, "error_message", None) or getattr(payload, "error_type", None) or "")


def _status(payload: Payload) -> Status:
    match getattr(payload, "status", "ok"):
        case "ok":
            return "ok"
        case "partial":
            return "unset"
        case _:
            return "error"


def trace_id_of(event: Event) -> str:
    """Return an event's trace id, or the one its session id stands for where it carries none."""
    return event.trace_id if _TRACE_ID.fullmatch(event.trace_id) else _ids.trace_id_of(event.session_id)


def _derived(kind: str, event_id: str) -> str:
    return sha256(f"{kind}:{event_id}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


_NAMES: Final[Mapping[Role, tuple[str, Kind, Callable[[Any, Facts], str]]]] = {
    "session": ("rag.pipeline", "INTERNAL", lambda _, facts: facts.pipeline),
    "query": ("rag.query", "INTERNAL", lambda _, facts: facts.pipeline),
    "embeddings": ("embeddings", "CLIENT", lambda payload, _: payload.embedding_model),
    "retrieval": ("rag.retrieve", "CLIENT", lambda _, facts: facts.database),
    "rerank": ("rag.rerank", "CLIENT", lambda payload, _: payload.model),
    "generation": ("chat", "CLIENT", lambda payload, _: payload.model),
    "evaluation": ("rag.evaluate", "INTERNAL", lambda _, facts: facts.pipeline),
    "escalation": ("rag.escalate", "INTERNAL", lambda payload, _: payload.rule),
    "feedback": ("feedback", "INTERNAL", lambda payload, _: payload.rating.value),
}
"""What a span is called: a verb, and what it is about."""

_ROLES: Final[dict[type[Payload], Role]] = {
    RetrievalQueryPayload: "query",
    RetrievalResultPayload: "retrieval",
    RerankPayload: "rerank",
    RAGSpanPayload: "generation",
    RAGEvaluationPayload: "evaluation",
    RAGSessionPayload: "session",
    EscalationPayload: "escalation",
    FeedbackSubmittedPayload: "feedback",
}


def nodes(session: Session) -> tuple[Node[Payload], ...]:
    """Return the tree of a session, root first where its summary is there, then the stages in order.

    Children name their parent whether or not it is there, so that parts sent apart make one tree. A process that
    joined a session has no root to give: the one where the session began has it.
    """
    summary = session.summary
    owned = summary is not None and not summary.payload.partial_view
    built: list[Node[Payload]] = [_root(summary, session)] if summary is not None and owned else []
    for stage in session.stages:
        if not isinstance(stage.payload, RAGSessionPayload):
            built.extend(_stage_nodes(stage, session))
    return tuple(built)


def _root(summary: Stage[RAGSessionPayload], session: Session) -> Node[Payload]:
    payload = summary.payload
    starts = [stage.start_ns for stage in session.stages if stage is not summary]
    start = _moment(payload.started_at) or min(starts, default=summary.start_ns)
    end = _moment(payload.ended_at) or summary.end_ns
    return _node("session", summary, session, session.facts, start=start, end=max(start, end))


def _moment(text: str | None) -> int:
    if not text:
        return 0
    try:
        return max(0, _clock.parse_timestamp(text))
    except ValueError:
        return 0


def _stage_nodes(stage: Stage[Payload], session: Session) -> Iterator[Node[Payload]]:
    role = _ROLES[type(stage.payload)]
    facts = session.facts_at(stage.event.event_id)
    node = _node(role, stage, session, facts, start=stage.start_ns, end=stage.end_ns)
    yield node
    if isinstance(stage.payload, RetrievalQueryPayload) and stage.payload.embedding_model:
        yield _node(
            "embeddings",
            stage,
            session,
            facts,
            start=stage.start_ns,
            end=stage.end_ns,
            span_id=_derived("embeddings", stage.event.event_id),
            parent=node.span_id,
        )


def _node(
    role: Role,
    stage: Stage[P],
    session: Session,
    facts: Facts,
    *,
    start: int,
    end: int,
    span_id: str = "",
    parent: str = "",
) -> Node[P]:
    event, payload = stage.event, stage.payload
    verb, kind, about = _NAMES[role]
    own = span_id or event.span_id
    above = parent or event.parent_span_id
    return Node(
        role=role,
        name=well_formed(f"{verb} {about(payload, facts) or UNKNOWN}"),
        kind=kind,
        trace_id=trace_id_of(event),
        span_id=own if _SPAN_ID.fullmatch(own) else _derived("event", event.event_id),
        parent_span_id=above if _SPAN_ID.fullmatch(above) else "",
        start_ns=start,
        end_ns=end,
        status=_status(payload),
        payload=payload,
        facts=facts,
        session=session,
        event=event,
    )


def spans(
    session: Session, contributions: Sequence[Contribution], document: Document | None = None
) -> tuple[Span, ...]:
    """Return the finished spans of a session.

    Args:
        session: The session.
        contributions: What each standard says of a node; a later one wins where two name the same attribute.
        document: What to say of each retrieved chunk, as `rag.doc.retrieved` events of the retrieval.
    """
    return tuple(_span(node, contributions, document) for node in nodes(session))


def _span(node: Node[Payload], contributions: Iterable[Contribution], document: Document | None) -> Span:
    attributes: Attributes = {}
    for contribution in contributions:
        attributes.update(contribution(node))
    events: tuple[SpanEvent, ...] = ()
    dropped = 0
    if document is not None and isinstance(node.payload, RetrievalResultPayload):
        chunks = node.payload.chunks
        events = tuple(
            SpanEvent("rag.doc.retrieved", node.end_ns, document(chunk)) for chunk in islice(chunks, MAX_DOCUMENTS)
        )
        dropped = max(0, len(chunks) - MAX_DOCUMENTS)
    return Span(
        name=node.name,
        kind=node.kind,
        trace_id=node.trace_id,
        span_id=node.span_id,
        parent_span_id=node.parent_span_id,
        start_ns=node.start_ns,
        end_ns=node.end_ns,
        status=node.status,
        error=well_formed(_error(node.payload)) if node.status == "error" else "",
        attributes=attributes,
        events=events,
        dropped_events=dropped,
        event_id=node.event.event_id,
    )
