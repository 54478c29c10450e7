"""OCSF: a retrieval as a security event, in the class that OCSF has for it and in the one AITF names.

OCSF 1.8 knows a query against a datastore (class 6005). AITF's text says class 7004 "Data Retrieval"; that
number means another class in OCSF itself, so the two are kept apart under two names (adr/0203).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from spanforge._text import well_formed
from spanforge._version import __version__
from spanforge.conventions._table import UNKNOWN, Level, Row, Section, Standard, nested
from spanforge.conventions.aitf import retrieval_digest
from spanforge.conventions.session import Session
from spanforge.conventions.spans import Node, error_type, nodes
from spanforge.namespaces.retrieval import RetrievalResultPayload

__all__ = ["OCSF", "OCSF_AITF", "datastore_events", "retrieval_events"]

_Retrieve: TypeAlias = Row["_Retrieval"]

_REQUIRED, _RECOMMENDED, _OPTIONAL = Level.REQUIRED, Level.RECOMMENDED, Level.OPTIONAL
_SUCCESS, _FAILURE, _OTHER = 1, 2, 99
_INFORMATIONAL, _LOW = 1, 2
_FINGERPRINT: Final = 30
_VECTOR: Final = 7
_RETRIEVER: Final = 6


@dataclass(frozen=True, slots=True)
class _Retrieval:
    """One retrieval, with its digest as `algorithm:hex`."""

    node: Node[RetrievalResultPayload]
    digest: str

    @property
    def status_id(self) -> int:
        return {"ok": _SUCCESS, "unset": _OTHER}.get(self.node.status, _FAILURE)

    @property
    def application(self) -> str:
        return self.node.event.source.partition("@")[0] or UNKNOWN

    @property
    def scores(self) -> list[float]:
        return [chunk.score for chunk in self.node.payload.chunks]

    @property
    def duration_ms(self) -> int:
        return (self.node.end_ns - self.node.start_ns) // 1_000_000


def _constant(value: object) -> Callable[[object], object]:
    return lambda _: value


def _observables(r: _Retrieval) -> list[dict[str, object]] | None:
    if not r.digest:
        return None
    return [
        {
            "name": "query_info.query_string",
            "type": "Fingerprint",
            "type_id": _FINGERPRINT,
            "value": r.digest,
        }
    ]


def _result(r: _Retrieval) -> dict[str, object]:
    scores = r.scores
    said = {
        "top_k": r.node.facts.top_k,
        "results_count": len(scores),
        "total_found": r.node.payload.total_found,
        "min_score": min(scores, default=None),
        "max_score": max(scores, default=None),
        "chunk_ids": [well_formed(chunk.chunk_id) for chunk in r.node.payload.chunks],
    }
    return {name: value for name, value in said.items() if value is not None}


_COMMON: Final[tuple[_Retrieve, ...]] = (
    Row("time", _REQUIRED, lambda r: r.node.end_ns // 1_000_000, "timestamp, in milliseconds"),
    Row("start_time", _OPTIONAL, lambda r: r.node.start_ns // 1_000_000, "timestamp - retrieved.latency_ms"),
    Row("end_time", _OPTIONAL, lambda r: r.node.end_ns // 1_000_000, "timestamp"),
    Row("duration", _OPTIONAL, lambda r: r.duration_ms, "retrieved.latency_ms, whole milliseconds"),
    Row(
        "severity_id",
        _REQUIRED,
        lambda r: _LOW if r.node.status == "error" else _INFORMATIONAL,
        "2 (low) for errors, else 1 (informational)",
    ),
    Row(
        "status_id",
        _RECOMMENDED,
        lambda r: r.status_id,
        "retrieved.status: ok 1, error and timeout 2, partial 99",
    ),
    Row("status", _RECOMMENDED, lambda r: r.node.payload.status, "retrieved.status"),
    Row("status_code", _RECOMMENDED, lambda r: error_type(r.node), "class or code of the error"),
    Row("message", _RECOMMENDED, lambda r: r.node.name, "name of the span"),
    Row("metadata.product.name", _REQUIRED, _constant("spanforge"), "constant"),
    Row("metadata.product.vendor_name", _RECOMMENDED, _constant("spanforge"), "constant"),
    Row("metadata.product.version", _RECOMMENDED, _constant(__version__), "version of spanforge"),
    Row("metadata.uid", _OPTIONAL, lambda r: r.node.event.event_id, "event_id"),
    Row("metadata.correlation_uid", _OPTIONAL, lambda r: r.node.event.session_id, "session_id"),
    Row("metadata.tenant_uid", _RECOMMENDED, lambda r: r.node.event.org_id, "org_id"),
    Row("metadata.original_time", _RECOMMENDED, lambda r: r.node.event.timestamp, "timestamp, as stored"),
    Row("actor.app_name", _REQUIRED, lambda r: r.application, "source"),
    Row("actor.user.uid", _OPTIONAL, lambda r: r.node.event.actor_id, "actor_id"),
)
DATASTORE: Final[tuple[_Retrieve, ...]] = (
    Row("category_uid", _REQUIRED, _constant(6), "constant: application activity"),
    Row("class_uid", _REQUIRED, _constant(6005), "constant: datastore activity"),
    Row("activity_id", _REQUIRED, _constant(4), "constant: query"),
    Row("activity_name", _OPTIONAL, _constant("Query"), "constant"),
    Row("type_uid", _REQUIRED, _constant(600504), "class_uid * 100 + activity_id"),
    *_COMMON,
    Row("metadata.version", _REQUIRED, _constant("1.8.0"), "version of the schema"),
    Row("metadata.profiles", _OPTIONAL, _constant(["ai_operation"]), "constant"),
    Row("src_endpoint.svc_name", _REQUIRED, lambda r: r.application, "source"),
    Row("database.name", _REQUIRED, lambda r: r.node.facts.database, "query.retriever_name"),
    Row("database.type_id", _REQUIRED, _constant(_VECTOR), "constant: vector database"),
    Row("database.type", _RECOMMENDED, _constant("Vector"), "constant"),
    Row("database.embedding_model", _OPTIONAL, lambda r: r.node.facts.embedding_model, "query.embedding_model"),
    Row("table.name", _RECOMMENDED, lambda r: r.node.facts.index, "query.namespace"),
    Row("query_info.uid", _RECOMMENDED, lambda r: r.node.event.event_id, "event_id"),
    Row("query_info.query_string", _REQUIRED, lambda r: r.digest, "retrieved.query_hash; never the text"),
    Row("observables", _RECOMMENDED, _observables, "retrieved.query_hash as a fingerprint"),
    Row(
        "message_context.application.name",
        _OPTIONAL,
        lambda r: r.node.facts.pipeline or r.application,
        "query.pipeline_name, else source",
    ),
    Row("message_context.uid", _RECOMMENDED, lambda r: r.node.event.session_id, "session_id"),
    Row("message_context.ai_role_id", _RECOMMENDED, _constant(_RETRIEVER), "constant: retriever"),
    Row(
        "ai_model.name",
        _RECOMMENDED,
        lambda r: r.node.facts.embedding_model,
        "query.embedding_model; the object is left out without it",
    ),
    Row(
        "ai_model.ai_provider",
        _OPTIONAL,
        lambda r: UNKNOWN if r.node.facts.embedding_model else None,
        "not known of an embedding: `unknown`",
    ),
    Row("unmapped", _OPTIONAL, _result, "retrieved: counts, scores and chunk ids"),
)
RETRIEVAL: Final[tuple[_Retrieve, ...]] = (
    Row("category_uid", _REQUIRED, _constant(7), "derived from the class number"),
    Row("class_uid", _REQUIRED, _constant(7004), "constant: data retrieval"),
    Row("activity_id", _REQUIRED, _constant(1), "constant: vector search"),
    Row("activity_name", _OPTIONAL, _constant("Vector Search"), "constant"),
    Row("type_uid", _REQUIRED, _constant(700401), "class_uid * 100 + activity_id"),
    *_COMMON,
    Row("database_name", _REQUIRED, lambda r: r.node.facts.database, "query.retriever_name"),
    Row("database_type", _REQUIRED, _constant("vector"), "constant"),
    Row("query", _OPTIONAL, lambda r: r.digest, "retrieved.query_hash; never the text"),
    Row("top_k", _RECOMMENDED, lambda r: r.node.facts.top_k, "query.top_k"),
    Row("results_count", _REQUIRED, lambda r: len(r.scores), "number of retrieved.chunks"),
    Row("min_score", _RECOMMENDED, lambda r: min(r.scores, default=None), "lowest score"),
    Row("max_score", _RECOMMENDED, lambda r: max(r.scores, default=None), "highest score"),
    Row("embedding_model", _RECOMMENDED, lambda r: r.node.facts.embedding_model, "query.embedding_model"),
    Row(
        "embedding_dimensions",
        _OPTIONAL,
        lambda r: r.node.facts.embedding_dimensions,
        "query.embedding_dimensions",
    ),
    Row("pipeline_name", _OPTIONAL, lambda r: r.node.facts.pipeline, "query.pipeline_name"),
    Row("pipeline_stage", _OPTIONAL, _constant("retrieve"), "constant"),
)


def _retrievals(session: Session) -> list[_Retrieval]:
    found = [cast("Node[RetrievalResultPayload]", node) for node in nodes(session) if node.role == "retrieval"]
    return [_Retrieval(node, retrieval_digest(node)) for node in found]


def _record(rows: tuple[_Retrieve, ...], retrieval: _Retrieval) -> dict[str, Any]:
    flat: dict[str, object] = {}
    for row in rows:
        value = row.read(retrieval)
        if value is None or value == "":
            if row.level is Level.REQUIRED:
                flat[row.key] = UNKNOWN
        else:
            flat[row.key] = well_formed(value) if isinstance(value, str) else value
    return nested(flat)


def datastore_events(session: Session) -> list[dict[str, Any]]:
    """Return one OCSF 1.8 Datastore Activity (class 6005, profile `ai_operation`) for each retrieval."""
    return [_record(DATASTORE, retrieval) for retrieval in _retrievals(session)]


def retrieval_events(session: Session) -> list[dict[str, Any]]:
    """Return one "Data Retrieval" (class 7004 as AITF numbers it; not OCSF's 7004) for each retrieval."""
    return [_record(RETRIEVAL, retrieval) for retrieval in _retrievals(session)]


OCSF: Final = Standard(
    name="OCSF",
    version="1.8.0, class 6005 Datastore Activity, profile `ai_operation`",
    note="One event for each retrieval. `observables` carries the query's digest as a fingerprint.",
    sections=(Section("Datastore Activity: Query (600504)", DATASTORE),),
)
OCSF_AITF: Final = Standard(
    name="OCSF as AITF numbers it (`ocsf-aitf`)",
    version="class 7004 Data Retrieval",
    note=(
        "AITF's text gives RAG retrieval the class number 7004; category 7 and type 700401 follow from it. "
        "In OCSF itself 7004 is Network Remediation Activity: a consumer that follows OCSF misreads these "
        "events, and no OCSF validator accepts them. Use `ocsf` unless yours expects AITF's number."
    ),
    sections=(Section("Data Retrieval: Vector Search (700401)", RETRIEVAL),),
)
