"""A retrieval as AITF writes it in OCSF: class 7004 "Data Retrieval", which means something else in OCSF (adr/0203)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, TypeAlias
from uuid import UUID

from spanforge import _clock, _ids
from spanforge._version import __version__
from spanforge.namespaces.retrieval import RetrievalResultPayload
from spanforge.standards._table import Level, Row, Section, Standard, field_row
from spanforge.standards.aitf import filters, retrieval_digest, scores_of
from spanforge.standards.ocsf import SEVERITY, application_of, constant, duration_ms, record, status_id
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import Node, nodes

__all__ = ["OCSF_AITF", "retrieval_events", "uuid_of"]

_Retrieve: TypeAlias = Row[Node[RetrievalResultPayload]]

_REQUIRED, _RECOMMENDED, _OPTIONAL = Level.REQUIRED, Level.RECOMMENDED, Level.OPTIONAL


def uuid_of(event_id: str) -> str:
    """Return an event's id as a UUID: a ULID's own 128 bits, or the first of any other id's digest."""
    number = _ids.decode(event_id)
    if number is None:
        number = int.from_bytes(sha256(event_id.encode("utf-8", "surrogatepass")).digest()[:16])
    return str(UUID(int=number))


RETRIEVAL: Final[tuple[_Retrieve, ...]] = (
    Row("category_uid", _REQUIRED, constant(7), "derived from the class number"),
    Row("class_uid", _REQUIRED, constant(7004), "constant: data retrieval"),
    Row("activity_id", _REQUIRED, constant(1), "constant: vector search"),
    Row("activity_name", _OPTIONAL, constant("Vector Search"), "constant"),
    Row("type_uid", _REQUIRED, constant(700401), "class_uid * 100 + activity_id"),
    Row("time", _REQUIRED, lambda n: _clock.timestamp(n.end_ns), "timestamp, ISO 8601 in UTC"),
    Row("duration", _OPTIONAL, duration_ms, "retrieved.latency_ms, whole milliseconds, where it was measured"),
    SEVERITY,
    Row("status_id", _REQUIRED, status_id, "retrieved.status: ok 1, error and timeout 2, partial 99"),
    field_row("status", _RECOMMENDED, "retrieved.status"),
    Row("status_code", _RECOMMENDED, lambda n: n.error_type, "class or code of the error"),
    Row("message", _RECOMMENDED, lambda n: n.name, "name of the span"),
    Row("metadata.version", _REQUIRED, constant("1.1.0"), "version of OCSF that AITF writes"),
    Row("metadata.product.name", _REQUIRED, constant("spanforge"), "constant"),
    Row("metadata.product.vendor_name", _RECOMMENDED, constant("spanforge"), "constant"),
    Row("metadata.product.version", _RECOMMENDED, constant(__version__), "version of spanforge"),
    Row("metadata.uid", _OPTIONAL, lambda n: uuid_of(n.event.event_id), "event_id, its 128 bits as a UUID"),
    Row("metadata.correlation_uid", _OPTIONAL, lambda n: n.event.session_id, "session_id"),
    Row("metadata.tenant_uid", _OPTIONAL, lambda n: n.event.org_id, "org_id"),
    Row("metadata.original_time", _RECOMMENDED, lambda n: _clock.timestamp(n.end_ns), "timestamp"),
    Row("actor.app_name", _REQUIRED, application_of, "source"),
    Row("actor.user.uid", _OPTIONAL, lambda n: n.event.actor_id, "actor_id"),
    Row("actor.session.uid", _OPTIONAL, lambda n: n.event.session_id, "session_id"),
    field_row("database_name", _REQUIRED, "query.retriever_name"),
    Row("database_type", _REQUIRED, constant("vector"), "constant"),
    Row("query", _OPTIONAL, retrieval_digest, "retrieved.query_hash; never the text"),
    field_row("top_k", _RECOMMENDED, "query.top_k, where it was said"),
    Row("results_count", _REQUIRED, lambda n: len(n.payload.chunks), "number of retrieved.chunks"),
    Row("min_score", _RECOMMENDED, lambda n: min(scores_of(n), default=None), "lowest score"),
    Row("max_score", _RECOMMENDED, lambda n: max(scores_of(n), default=None), "highest score"),
    Row("filter", _OPTIONAL, filters, "query.filters as JSON"),
    field_row("embedding_model", _RECOMMENDED, "query.embedding_model"),
    field_row("embedding_dimensions", _OPTIONAL, "query.embedding_dimensions"),
    field_row("pipeline_name", _OPTIONAL, "query.pipeline_name"),
    Row("pipeline_stage", _OPTIONAL, constant("retrieve"), "constant"),
)


def retrieval_events(session: Session) -> list[dict[str, Any]]:
    """Return one "Data Retrieval" (class 7004 as AITF numbers it; not OCSF's 7004) for each retrieval."""
    return [record(RETRIEVAL, node) for node in nodes(session) if node.role == "retrieval"]


OCSF_AITF: Final = Standard(
    name="OCSF as AITF numbers it (`ocsf-aitf`)",
    version="class 7004 Data Retrieval, metadata.version 1.1.0",
    note=(
        "AITF's text gives RAG retrieval the class number 7004; category 7 and type 700401 follow from it. In"
        " OCSF itself 7004 is Network Remediation Activity: a consumer that follows OCSF misreads these "
        "events, and no OCSF validator accepts them. Use `ocsf` unless yours expects AITF's number. Moments "
        "are ISO 8601, ids are UUIDs."
    ),
    unsaid="All but retrievals: AITF's text numbers nothing else of a RAG. The query's text; its digest is sent.",
    checked="AITF's JSON Schema of an OCSF event and its class of the event, as assertions that name the rule.",
    sections=(Section("Data Retrieval: Vector Search (700401)", RETRIEVAL),),
)
