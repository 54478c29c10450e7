"""A session as a tree of spans, before any standard has named anything on it.

`nodes` builds the tree once; each standard adds its attributes by a pure function of one node. Ids and times
are those of the events, so that sending a session again makes no second span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from spanforge import _ids
from spanforge._text import well_formed
from spanforge.namespaces.event import Event
from spanforge.namespaces.feedback import FeedbackSubmittedPayload
from spanforge.namespaces.payload import Payload
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
from spanforge.standards._table import UNKNOWN, Attributes, Row, collect
from spanforge.standards.tree.layout import PIPELINE
from spanforge.standards.tree.outcome import OTHER, Status, error_of, error_of_root
from spanforge.standards.tree.session import Facts, Session
from spanforge.standards.tree.stages import Stage, moment

__all__ = [
    "AITF_NAMES",
    "GENAI_NAMES",
    "MAX_DOCUMENTS",
    "ROLES",
    "Names",
    "Node",
    "Role",
    "Span",
    "SpanEvent",
    "Tables",
    "merged",
    "nodes",
    "parent_span_id_of",
    "scored_document",
    "span_id_of",
    "spans",
    "trace_id_of",
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

MAX_DOCUMENTS: Final = 128
"""Documents that one span carries: OpenTelemetry's own default limit for what hangs on a span."""

P = TypeVar("P", bound=Payload)
P_co = TypeVar("P_co", bound=Payload, covariant=True)

_TRACE_ID: Final = re.compile(r"(?!0{32})[0-9a-f]{32}")
_SPAN_ID: Final = re.compile(r"(?!0{16})[0-9a-f]{16}")


def scored_document(chunk: RetrievedChunk) -> dict[str, object]:
    """Return the id of a chunk, and its score where it has one."""
    return {"id": chunk.chunk_id} if chunk.score is None else {"id": chunk.chunk_id, "score": chunk.score}


class Node(NamedTuple, Generic[P_co]):
    """One span of a session, unnamed by any standard.

    Attributes:
        role: What it stands for.
        name: Its name, as AITF RAG_CONTEXT or OpenTelemetry GenAI gives it.
        kind: `CLIENT` where another system does the work.
        trace_id: 32 hex digits.
        span_id: 16 hex digits.
        parent_span_id: 16 hex digits; empty for a root.
        start_ns: Nanoseconds since the epoch.
        end_ns: Likewise, never before the start.
        error_type: A low-cardinality name of its error; empty where it did not fail.
        reconstructed: Start and end were worked out, because the stage was reported after the fact.
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
    error_type: str
    reconstructed: bool
    payload: P_co
    facts: Facts
    session: Session
    event: Event

    @property
    def status(self) -> Status:
        """`error` for errors and time-outs that nothing handled, else `unset`."""
        return "error" if self.error_type else "unset"


class SpanEvent(NamedTuple):
    """Something that happened at one moment of a span."""

    name: str
    time_ns: int
    attributes: Attributes


class Span(NamedTuple):
    """A node with the attributes that the standards gave it (see `Node` for the other fields).

    Attributes:
        error: Class or code of the error, where there was one and it is known.
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
    events: tuple[SpanEvent, ...] = ()
    dropped_events: int = 0
    event_id: str = ""


Tables: TypeAlias = Mapping[Role, tuple[Row[Any], ...]]
"""A standard's rows for each kind of span."""

ROLES: Final[tuple[Role, ...]] = get_args(Role)


def merged(*standards: Tables) -> Tables:
    """Return the rows of several standards as those of one; a later one wins where two name the same attribute."""
    return {role: tuple(row for tables in standards for row in tables.get(role, ())) for role in ROLES}


def trace_id_of(event: Event) -> str:
    """Return an event's trace id, or the one its session id stands for where it carries none."""
    return event.trace_id if _TRACE_ID.fullmatch(event.trace_id) else _ids.trace_id_of(event.session_id)


def span_id_of(event: Event) -> str:
    """Return an event's span id, or one derived from its own id where it carries none."""
    return event.span_id if _SPAN_ID.fullmatch(event.span_id) else _derived("event", event.event_id)


def parent_span_id_of(event: Event) -> str:
    """Return the id of the span that an event hangs under; empty where it carries none."""
    return event.parent_span_id if _SPAN_ID.fullmatch(event.parent_span_id) else ""


def _derived(kind: str, event_id: str) -> str:
    return sha256(f"{kind}:{event_id}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


Names: TypeAlias = Mapping[Role, tuple[str, Kind, Callable[[Any, Facts], str]]]
"""What each kind of span is called: a verb, its kind, and what it is about."""

AITF_NAMES: Final[Names] = {
    "session": ("rag.pipeline", "INTERNAL", lambda _, facts: facts.pipeline_name),
    "query": ("rag.query", "INTERNAL", lambda _, facts: facts.pipeline_name),
    "embeddings": ("embeddings", "CLIENT", lambda payload, _: payload.embedding_model),
    "retrieval": ("rag.retrieve", "CLIENT", lambda _, facts: facts.retriever_name),
    "rerank": ("rag.rerank", "CLIENT", lambda payload, _: payload.model),
    "generation": ("chat", "CLIENT", lambda payload, _: payload.model),
    "evaluation": ("rag.evaluate", "INTERNAL", lambda _, facts: facts.pipeline_name),
    "escalation": ("escalate", "INTERNAL", lambda payload, _: payload.rule),
    "feedback": ("feedback", "INTERNAL", lambda payload, _: payload.rating.value),
}
"""As AITF RAG_CONTEXT names them; `rag.` is AITF's, so what it does not know begins otherwise."""

GENAI_NAMES: Final[Names] = {
    **AITF_NAMES,
    "session": ("invoke_workflow", "INTERNAL", lambda _, facts: facts.pipeline_name),
    "retrieval": ("retrieval", "INTERNAL", lambda _, facts: facts.retriever_name),
}
"""As OpenTelemetry GenAI names them, where it differs."""

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


def nodes(session: Session, names: Names = AITF_NAMES) -> tuple[Node[Payload], ...]:
    """Return the tree of a session, root first where its summary is there, then the stages in order.

    Children name their parent whether or not it is there, so that parts sent apart make one tree. A process that
    joined a session has no root to give: the one where the session began has it.

    Args:
        session: The session.
        names: What the spans are called.
    """
    summary = session.summary
    owned = summary is not None and not summary.payload.partial_view
    built: list[Node[Payload]] = [_root(summary, session, names)] if summary is not None and owned else []
    for stage in session.stages:
        if not isinstance(stage.payload, RAGSessionPayload):
            built.extend(_stage_nodes(stage, session, names))
    return tuple(built)


def _root(summary: Stage[RAGSessionPayload], session: Session, names: Names) -> Node[Payload]:
    """Return the root, which begins with the earliest of its stages and ends with the last of them."""
    payload = summary.payload
    began, ended = moment(payload.started_at), moment(payload.ended_at)
    start = min((at for at in (began, session.known.began_ns) if at is not None), default=summary.start_ns)
    timed = (stage.end_ns for stage in session.stages if type(stage.payload) in PIPELINE)
    end = max((start, summary.end_ns if ended is None else ended, *timed))
    return _node(
        "session", summary._replace(start_ns=start, end_ns=end), session, names, error=error_of_root(payload, session)
    )


def _stage_nodes(stage: Stage[Payload], session: Session, names: Names) -> Iterator[Node[Payload]]:
    node = _node(_ROLES[type(stage.payload)], stage, session, names, error=error_of(stage.payload))
    yield node
    if isinstance(stage.payload, RetrievalQueryPayload) and stage.payload.embedding_model:
        derived = _derived("embeddings", stage.event.event_id)
        yield _node("embeddings", stage, session, names, span_id=derived, parent=node.span_id)


def _node(
    role: Role,
    stage: Stage[P],
    session: Session,
    names: Names,
    *,
    error: str = "",
    span_id: str = "",
    parent: str = "",
) -> Node[P]:
    event, payload = stage.event, stage.payload
    facts = session.facts if role == "session" else session.facts_at(event.event_id)
    verb, kind, about = names[role]
    return Node(
        role=role,
        name=well_formed(f"{verb} {about(payload, facts) or UNKNOWN}"),
        kind=kind,
        trace_id=trace_id_of(event),
        span_id=span_id or span_id_of(event),
        parent_span_id=parent or parent_span_id_of(event),
        start_ns=stage.start_ns,
        end_ns=stage.end_ns,
        error_type=error,
        reconstructed=stage.reconstructed,
        payload=payload,
        facts=facts,
        session=session,
        event=event,
    )


_NOTHING: Final[Tables] = {}


def spans(
    session: Session,
    tables: Tables = _NOTHING,
    documents: Sequence[Row[RetrievedChunk]] = (),
    names: Names = AITF_NAMES,
) -> tuple[Span, ...]:
    """Return the finished spans of a session.

    Args:
        session: The session.
        tables: What the standards say of a node (see `merged`).
        documents: What to say of each retrieved chunk, as `rag.doc.retrieved` events of the retrieval.
        names: What the spans are called.
    """
    return tuple(_span(node, tables, documents) for node in nodes(session, names))


def _span(node: Node[Payload], tables: Tables, documents: Sequence[Row[RetrievedChunk]]) -> Span:
    events, dropped = _documents(node, documents)
    return Span(
        name=node.name,
        kind=node.kind,
        trace_id=node.trace_id,
        span_id=node.span_id,
        parent_span_id=node.parent_span_id,
        start_ns=node.start_ns,
        end_ns=node.end_ns,
        status=node.status,
        # A digest describes nothing.
        error="" if node.error_type == OTHER else node.error_type,
        attributes=collect(tables.get(node.role, ()), node),
        events=events,
        dropped_events=dropped,
        event_id=node.event.event_id,
    )


def _documents(node: Node[Payload], rows: Sequence[Row[RetrievedChunk]]) -> tuple[tuple[SpanEvent, ...], int]:
    """Return the events of a retrieval's documents, and how many there are too many of."""
    if not rows or not isinstance(node.payload, RetrievalResultPayload):
        return (), 0
    chunks = node.payload.chunks
    events = tuple(
        SpanEvent("rag.doc.retrieved", node.end_ns, collect(rows, chunk)) for chunk in islice(chunks, MAX_DOCUMENTS)
    )
    return events, max(0, len(chunks) - MAX_DOCUMENTS)
