"""OCSF: what happened in a session as security events, in the classes that OCSF has for it.

OCSF 1.8 knows a query against a datastore (class 6005), a call of an API (6003) and a finding (2004). People's
feedback is none of these and is left out. The event as AITF numbers it stands in `spanforge.standards.ocsf_aitf`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from spanforge._text import well_formed
from spanforge._version import __version__
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.providers import well_known
from spanforge.namespaces.retrieval import EscalationPayload, RAGSpanPayload, RetrievalResultPayload
from spanforge.standards._table import UNKNOWN, Level, Row, Section, Standard, field_row, nested
from spanforge.standards.aitf import retrieval_digest, scores_of
from spanforge.standards.tree.relations import all_tokens
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import Node, Role, nodes

__all__ = ["OCSF", "application_of", "constant", "duration_ms", "record", "security_events", "status_id"]

_Any: TypeAlias = Row[Node[Any]]
_Retrieve: TypeAlias = Row[Node[RetrievalResultPayload]]
_Chat: TypeAlias = Row[Node[RAGSpanPayload]]
_Escalate: TypeAlias = Row[Node[EscalationPayload]]

_REQUIRED, _RECOMMENDED, _OPTIONAL = Level.REQUIRED, Level.RECOMMENDED, Level.OPTIONAL
_SUCCESS, _FAILURE, _OTHER = 1, 2, 99
_CAPTIONS: Final = {_SUCCESS: "Success", _FAILURE: "Failure"}
_FINGERPRINT: Final = 30
_VECTOR: Final = 7
_ASSISTANT, _RETRIEVER = 2, 6


def application_of(node: Node[Payload]) -> str:
    """Return the name of the application that a node comes from."""
    return node.event.source.partition("@")[0] or UNKNOWN


def status_id(node: Node[Any]) -> int:
    """Return OCSF's number for how a stage ended."""
    if node.error_type:
        return _FAILURE
    return _SUCCESS if node.payload.status == "ok" else _OTHER


def duration_ms(node: Node[Any]) -> int | None:
    """Return how long a stage took in whole milliseconds, where that was measured."""
    return None if node.payload.latency_ms is None else (node.end_ns - node.start_ns) // 1_000_000


def constant(value: object) -> Callable[[object], object]:
    """Return a reader that gives the same value whatever it reads."""
    return lambda _: value


def _known(values: Mapping[str, object]) -> dict[str, object] | None:
    return {name: value for name, value in values.items() if value is not None} or None


def _observables(node: Node[RetrievalResultPayload]) -> list[dict[str, object]] | None:
    digest = retrieval_digest(node)
    named: dict[str, object] = {
        "name": "query_info.query_string",
        "type": "Fingerprint",
        "type_id": _FINGERPRINT,
        "value": digest,
    }
    return [named] if digest else None


def _found(node: Node[RetrievalResultPayload]) -> dict[str, object] | None:
    scores = scores_of(node)
    return _known(
        {
            "top_k": node.facts.top_k,
            "results_count": len(scores),
            "total_found": node.payload.total_found,
            "min_score": min(scores, default=None),
            "max_score": max(scores, default=None),
            "chunk_ids": [well_formed(chunk.chunk_id) for chunk in node.payload.chunks],
        }
    )


def _answered(node: Node[RAGSpanPayload]) -> dict[str, object] | None:
    payload = node.payload
    return _known(
        {
            "finish_reason": payload.finish_reason,
            "grounding_score": payload.grounding_score,
            "chunk_ids": [well_formed(chunk_id) for chunk_id in payload.chunk_ids_used] or None,
            "cost_usd": payload.cost_usd,
            "cost_basis": payload.cost_basis,
        }
    )


def _crossed(node: Node[EscalationPayload]) -> dict[str, object] | None:
    payload = node.payload
    return _known({"level": payload.level, "value": payload.value, "threshold": payload.threshold})


_EVENT: Final[tuple[_Any, ...]] = (
    Row("time", _REQUIRED, lambda n: n.end_ns // 1_000_000, "timestamp, in milliseconds"),
    Row("message", _RECOMMENDED, lambda n: n.name, "name of the span"),
    Row("metadata.version", _REQUIRED, constant("1.8.0"), "version of the schema"),
    Row("metadata.product.name", _REQUIRED, constant("spanforge"), "constant"),
    Row("metadata.product.vendor_name", _RECOMMENDED, constant("spanforge"), "constant"),
    Row("metadata.product.version", _RECOMMENDED, constant(__version__), "version of spanforge"),
    Row("metadata.uid", _OPTIONAL, lambda n: n.event.event_id, "event_id"),
    Row("metadata.correlation_uid", _OPTIONAL, lambda n: n.event.session_id, "session_id"),
    Row("metadata.tenant_uid", _RECOMMENDED, lambda n: n.event.org_id, "org_id"),
    Row("metadata.original_time", _RECOMMENDED, lambda n: n.event.timestamp, "timestamp, as stored"),
)
SEVERITY: Final[_Any] = Row(
    "severity_id", _REQUIRED, lambda n: 2 if n.error_type else 1, "2 (low) for errors, else 1 (informational)"
)
_STAGE: Final[tuple[_Any, ...]] = (
    *_EVENT,
    Row(
        "start_time",
        _OPTIONAL,
        lambda n: None if n.payload.latency_ms is None else n.start_ns // 1_000_000,
        "timestamp - latency_ms, where it was measured",
    ),
    Row("end_time", _OPTIONAL, lambda n: n.end_ns // 1_000_000, "timestamp"),
    Row("duration", _OPTIONAL, duration_ms, "latency_ms, whole milliseconds, where it was measured"),
    SEVERITY,
    Row("status_id", _RECOMMENDED, status_id, "status: ok 1, error and timeout 2, partial and cancelled 99"),
    Row(
        "status",
        _RECOMMENDED,
        lambda n: _CAPTIONS.get(status_id(n), n.payload.status),
        "caption of status_id; for 99, the status itself",
    ),
    Row("status_detail", _RECOMMENDED, lambda n: n.payload.status, "status"),
    Row("status_code", _RECOMMENDED, lambda n: n.error_type, "class or code of the error"),
    Row("metadata.profiles", _OPTIONAL, constant(["ai_operation"]), "constant"),
    Row("actor.app_name", _REQUIRED, application_of, "source"),
    Row("actor.user.uid", _OPTIONAL, lambda n: n.event.actor_id, "actor_id"),
    Row("src_endpoint.svc_name", _REQUIRED, application_of, "source"),
    Row(
        "message_context.application.name",
        _OPTIONAL,
        lambda n: n.facts.pipeline_name or application_of(n),
        "query.pipeline_name, else source",
    ),
    Row("message_context.uid", _RECOMMENDED, lambda n: n.event.session_id, "session_id"),
)


def _class(category: int, number: int, activity: int, caption: str) -> tuple[_Any, ...]:
    return (
        Row("category_uid", _REQUIRED, constant(category), "constant"),
        Row("class_uid", _REQUIRED, constant(number), "constant"),
        Row("activity_id", _REQUIRED, constant(activity), "constant"),
        Row("activity_name", _OPTIONAL, constant(caption), "caption of activity_id"),
        Row("type_uid", _REQUIRED, constant(number * 100 + activity), "class_uid * 100 + activity_id"),
    )


DATASTORE: Final[tuple[_Retrieve, ...]] = (
    *_class(6, 6005, 4, "Query"),
    *_STAGE,
    field_row("database.name", _REQUIRED, "query.retriever_name"),
    Row("database.type_id", _REQUIRED, constant(_VECTOR), "constant: vector database"),
    Row("database.type", _RECOMMENDED, constant("Vector"), "caption of database.type_id"),
    field_row("database.embedding_model", _OPTIONAL, "query.embedding_model"),
    field_row("table.name", _RECOMMENDED, "query.namespace"),
    Row("query_info.uid", _RECOMMENDED, lambda n: n.event.event_id, "event_id"),
    Row("query_info.query_string", _REQUIRED, retrieval_digest, "retrieved.query_hash; never the text"),
    Row("observables", _RECOMMENDED, _observables, "retrieved.query_hash as a fingerprint"),
    Row("message_context.ai_role_id", _RECOMMENDED, constant(_RETRIEVER), "constant: retriever"),
    field_row("ai_model.name", _RECOMMENDED, "query.embedding_model; the object is left out without it"),
    Row(
        "ai_model.ai_provider",
        _OPTIONAL,
        lambda n: (well_known(n.facts.embedding_provider) or UNKNOWN) if n.facts.embedding_model else None,
        "query.embedding_provider; `unknown` where nobody said it",
    ),
    Row("unmapped", _OPTIONAL, _found, "retrieved: counts, scores and chunk ids"),
)
API: Final[tuple[_Chat, ...]] = (
    *_class(6, 6003, 1, "Create"),
    *_STAGE,
    Row("api.operation", _REQUIRED, constant("chat"), "constant"),
    Row("api.service.name", _OPTIONAL, lambda n: well_known(n.payload.provider), "generated.provider"),
    Row("message_context.ai_role_id", _RECOMMENDED, constant(_ASSISTANT), "constant: assistant"),
    field_row("message_context.prompt_tokens", _OPTIONAL, "generated.prompt_tokens"),
    field_row("message_context.completion_tokens", _OPTIONAL, "generated.output_tokens"),
    Row("message_context.total_tokens", _OPTIONAL, all_tokens, "their sum, where both are known"),
    field_row("ai_model.name", _REQUIRED, "generated.model"),
    Row("ai_model.ai_provider", _REQUIRED, lambda n: well_known(n.payload.provider), "generated.provider"),
    field_row("ai_model.version", _OPTIONAL, "generated.response_model"),
    Row("unmapped", _OPTIONAL, _answered, "generated: finish reason, grounding, chunk ids, cost"),
)
FINDING: Final[tuple[_Escalate, ...]] = (
    *_class(2, 2004, 1, "Create"),
    *_EVENT,
    Row("severity_id", _REQUIRED, lambda n: n.payload.level + 1, "escalated.level: 1 low, 2 medium, 3 high"),
    Row("status_id", _RECOMMENDED, constant(1), "constant: nobody has looked at it yet"),
    Row("status", _RECOMMENDED, constant("New"), "caption of status_id"),
    Row("finding_info.uid", _REQUIRED, lambda n: n.event.event_id, "event_id"),
    field_row("finding_info.title", _RECOMMENDED, "escalated.rule"),
    Row("finding_info.types", _OPTIONAL, lambda n: [n.payload.trigger], "escalated.trigger"),
    Row("finding_info.created_time", _OPTIONAL, lambda n: n.end_ns // 1_000_000, "timestamp, in milliseconds"),
    Row("unmapped", _OPTIONAL, _crossed, "escalated: level, value and threshold"),
)

_CLASSES: Final[Mapping[Role, tuple[Row[Any], ...]]] = {
    "retrieval": DATASTORE,
    "generation": API,
    "escalation": FINDING,
}


def security_events(session: Session) -> list[dict[str, Any]]:
    """Return an OCSF 1.8 event for each retrieval, generation and escalation of a session.

    They are a Datastore Activity (class 6005) and an API Activity (6003), both with the profile `ai_operation`, and
    a Detection Finding (2004).
    """
    return [record(_CLASSES[node.role], node) for node in nodes(session) if node.role in _CLASSES]


def record(rows: Iterable[Row[Any]], node: Node[Any]) -> dict[str, Any]:
    """Return what a table says of a node as an event of its own; what nobody gave is left out, or `unknown`."""
    flat: dict[str, object] = {}
    for row in rows:
        value = row.read(node)
        if value is None or value == "":
            if row.level is Level.REQUIRED:
                flat[row.key] = UNKNOWN
        else:
            flat[row.key] = well_formed(value) if isinstance(value, str) else value
    return nested(flat)


OCSF: Final = Standard(
    name="OCSF",
    version="1.8.0",
    note=(
        "One event for each retrieval, generation and escalation. `observables` carries the query's digest as"
        " a fingerprint."
    ),
    unsaid="Feedback, queries, reranks and evaluations: none is a security event. Durations that nobody measured.",
    checked=(
        "`ocsf-json-schema` 1.2.0, and the rule of OCSF's server that a name beside a number is its caption, "
        "as plain assertions: the server itself is in no registry."
    ),
    sections=(
        Section("Datastore Activity: Query (600504), profile `ai_operation`, for a retrieval", DATASTORE),
        Section("API Activity: Create (600301), profile `ai_operation`, for a generation", API),
        Section("Detection Finding: Create (200401), for an escalation", FINDING),
    ),
)
