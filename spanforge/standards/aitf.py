"""AITF, RAG_CONTEXT: the span attributes of the specification, and the names that its later releases read.

Where the text asks for the query, its digest is sent: the raw query never leaves the call (ADR-006).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeAlias

from spanforge.namespaces.payload import Payload
from spanforge.namespaces.providers import well_known
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RetrievedChunk,
)
from spanforge.standards._table import Level, Row, Section, Standard, encode, field_row
from spanforge.standards.tree.relations import chunks_before
from spanforge.standards.tree.session import labelled
from spanforge.standards.tree.spans import MAX_DOCUMENTS, Node, Role, Tables, merged, scored_document

__all__ = [
    "AITF",
    "AITF_LATER",
    "ATTRIBUTES",
    "ATTRIBUTES_AND_LATER",
    "DOCUMENT",
    "DOCUMENT_AND_LATER",
    "filters",
    "retrieval_digest",
    "scores_of",
]

_Root: TypeAlias = Row[Node[RAGSessionPayload]]
_Query: TypeAlias = Row[Node[RetrievalQueryPayload]]
_Retrieve: TypeAlias = Row[Node[RetrievalResultPayload]]
_Rerank: TypeAlias = Row[Node[RerankPayload]]
_Evaluate: TypeAlias = Row[Node[RAGEvaluationPayload]]
_Chat: TypeAlias = Row[Node[RAGSpanPayload]]
_Chunk: TypeAlias = Row[RetrievedChunk]

_REQUIRED, _RECOMMENDED, _OPTIONAL = Level.REQUIRED, Level.RECOMMENDED, Level.OPTIONAL
_INJECTION: Final = "OWASP LLM01, MITRE ATLAS AML.T0051"
_MEASURE: Final = "NIST AI RMF MEASURE-2.5"
_MODEL: Final = "MITRE ATLAS AML.T0044, EU AI Act Art. 13"


def _stage(name: str) -> Row[Node[Any]]:
    """Return the row that says where in the pipeline a span stands; without one, mappers take it for a search."""
    return Row("aitf.rag.pipeline.stage", _REQUIRED, lambda _: name, "constant", _MEASURE)


def retrieval_digest(node: Node[RetrievalResultPayload]) -> str:
    """Return the digest of the query a retrieval answered, as `algorithm:hex`; empty if nobody gave one."""
    return labelled(node.facts.algorithm, node.payload.query_hash) or node.facts.query


def _documents(node: Node[RetrievalResultPayload]) -> str | None:
    """Return the documents as JSON: id, score and provenance, never a snippet."""
    if not node.payload.chunks:
        return None
    listed = [
        scored_document(chunk) | ({"provenance": chunk.source} if chunk.source else {})
        for chunk in islice(node.payload.chunks, MAX_DOCUMENTS)
    ]
    return encode(listed)


def _before_rerank(node: Node[RerankPayload]) -> int | None:
    """Return how many chunks went into a rerank, as far as the trace says."""
    said = node.payload.input_count
    return said if said is not None else len(chunks_before(node.session, node)) or None


def filters(node: Node[Payload]) -> str | None:
    """Return the metadata filters as JSON; None where there are none."""
    return encode(node.facts.filters) if node.facts.filters else None


def scores_of(node: Node[RetrievalResultPayload]) -> list[float]:
    """Return the scores that a retrieval brought."""
    return [chunk.score for chunk in node.payload.chunks if chunk.score is not None]


_NAME: Final[Row[Node[Any]]] = field_row(
    "aitf.rag.pipeline.name", _REQUIRED, "query.pipeline_name", "NIST AI RMF MAP-1.1"
)
_EMBEDDING: Final[Row[Node[Any]]] = field_row(
    "aitf.rag.query.embedding_model", _RECOMMENDED, "query.embedding_model", _MODEL
)

_QUERY_DIGEST: Final[Row[Node[Any]]] = Row(
    "aitf.rag.query", _REQUIRED, lambda n: n.facts.query, "query.query_hash with its algorithm", _INJECTION
)

PIPELINE: Final[tuple[_Root, ...]] = (
    _NAME,
    Row(
        "aitf.rag.pipeline.stage",
        _REQUIRED,
        lambda n: n.session.reached,
        "`evaluate` or `generate`, the furthest there is; `query` before either",
        _MEASURE,
    ),
    _QUERY_DIGEST,
)
QUERY: Final[tuple[_Query, ...]] = (
    _NAME,
    _stage("query"),
    _QUERY_DIGEST,
    _EMBEDDING,
    field_row("aitf.rag.query.embedding_dimensions", _OPTIONAL, "query.embedding_dimensions"),
)
RETRIEVE: Final[tuple[_Retrieve, ...]] = (
    _NAME,
    _stage("retrieve"),
    _EMBEDDING,
    field_row("aitf.rag.retrieve.database", _REQUIRED, "query.retriever_name", "OWASP LLM08, MITRE ATLAS AML.T0043"),
    Row("aitf.rag.query", _REQUIRED, retrieval_digest, "retrieved.query_hash with its algorithm", _INJECTION),
    field_row("aitf.rag.retrieve.index", _RECOMMENDED, "query.namespace", "NIST AI RMF MAP-1.5"),
    field_row("aitf.rag.retrieve.top_k", _RECOMMENDED, "query.top_k, where it was said", _MEASURE),
    Row("aitf.rag.retrieve.filter", _OPTIONAL, filters, "query.filters as JSON"),
    Row(
        "aitf.rag.retrieve.results_count",
        _REQUIRED,
        lambda n: len(n.payload.chunks),
        "number of retrieved.chunks",
        f"{_MEASURE}, OWASP LLM08",
    ),
    Row(
        "aitf.rag.retrieval.docs",
        _RECOMMENDED,
        _documents,
        "retrieved.chunks as JSON: id, score, provenance",
        "OWASP LLM08, MITRE ATLAS AML.T0043",
    ),
    Row(
        "aitf.rag.retrieve.min_score",
        _RECOMMENDED,
        lambda n: min(scores_of(n), default=None),
        "lowest of retrieved.chunks[].score",
        f"OWASP LLM08, {_MEASURE}",
    ),
    Row(
        "aitf.rag.retrieve.max_score",
        _RECOMMENDED,
        lambda n: max(scores_of(n), default=None),
        "highest of retrieved.chunks[].score",
        f"OWASP LLM08, {_MEASURE}",
    ),
)
DOCUMENT: Final[tuple[_Chunk, ...]] = (
    Row(
        "aitf.rag.doc.id",
        _RECOMMENDED,
        lambda c: c.chunk_id,
        "chunk.chunk_id",
        "NIST AI RMF MAP-1.5, EU AI Act Art. 12",
    ),
    Row("aitf.rag.doc.score", _RECOMMENDED, lambda c: c.score, "chunk.score", f"OWASP LLM08, {_MEASURE}"),
    Row("aitf.rag.doc.provenance", _RECOMMENDED, lambda c: c.source, "chunk.source", "OWASP LLM09, EU AI Act Art. 13"),
)
RERANK: Final[tuple[_Rerank, ...]] = (
    _NAME,
    _stage("rerank"),
    field_row("aitf.rag.rerank.model", _REQUIRED, "reranked.model", _MODEL),
    Row(
        "aitf.rag.rerank.input_count",
        _REQUIRED,
        _before_rerank,
        "reranked.input_count, else the distinct chunks of all retrievals before",
        _MEASURE,
    ),
    field_row("aitf.rag.rerank.output_count", _REQUIRED, "reranked.output_count, where it is known", _MEASURE),
)
EVALUATE: Final[tuple[_Evaluate, ...]] = (
    _NAME,
    _stage("evaluate"),
    field_row("aitf.rag.quality.context_relevance", _RECOMMENDED, "evaluated.context_relevance", _MEASURE),
    field_row("aitf.rag.quality.answer_relevance", _RECOMMENDED, "evaluated.answer_relevance", _MEASURE),
    field_row("aitf.rag.quality.faithfulness", _RECOMMENDED, "evaluated.faithfulness", f"OWASP LLM09, {_MEASURE}"),
    field_row(
        "aitf.rag.quality.groundedness", _RECOMMENDED, "evaluated.groundedness", "OWASP LLM09, EU AI Act Art. 13"
    ),
)

_REPLACED: Final = frozenset({"aitf.rag.query", "aitf.rag.retrieve.database"})
"""Later releases have other names for these two; they stand in the rows below."""


def _unprefixed(rows: tuple[Row[Any], ...]) -> tuple[Row[Any], ...]:
    return tuple(replace(row, key=row.key.removeprefix("aitf.")) for row in rows if row.key not in _REPLACED)


def _under_both(rows: tuple[Row[Any], ...]) -> tuple[Row[Any], ...]:
    return tuple(row if row.key in _REPLACED else replace(row, also=row.key.removeprefix("aitf.")) for row in rows)


_QUERY_TEXT: Final = replace(_QUERY_DIGEST, key="rag.query.text", origin=f"{_QUERY_DIGEST.origin}; never the text")
_SOURCE: Final[tuple[_Retrieve, ...]] = (
    field_row("gen_ai.data_source.id", _REQUIRED, "query.retriever_name", "NIST AI RMF MAP-1.5"),
    field_row("rag.database.name", _REQUIRED, "query.retriever_name", "CoSAI WS2"),
    field_row("gen_ai.request.top_k", _RECOMMENDED, "query.top_k: AITF's name for it since 0.2"),
)
_CHAT_LATER: Final[tuple[_Chat, ...]] = (
    Row(
        "gen_ai.system",
        _OPTIONAL,
        lambda n: well_known(n.payload.provider),
        "generated.provider, by its well-known name",
    ),
    field_row("latency.total_ms", _OPTIONAL, "generated.latency_ms"),
    field_row("latency.time_to_first_token_ms", _OPTIONAL, "generated.time_to_first_token_ms"),
    field_row("cost.total_cost", _OPTIONAL, "generated.cost_usd"),
    Row(
        "cost.currency",
        _OPTIONAL,
        lambda n: None if n.payload.cost_usd is None else "USD",
        "`USD`, where there is a cost",
    ),
)

ATTRIBUTES: Final[Tables] = {
    "session": PIPELINE,
    "query": QUERY,
    "retrieval": RETRIEVE,
    "rerank": RERANK,
    "evaluation": EVALUATE,
}
"""The attributes of the specification, for each kind of span."""
_ONLY_LATER: Final[Tables] = {
    "session": (_QUERY_TEXT,),
    "query": (_QUERY_TEXT,),
    "retrieval": (_QUERY_TEXT, *_SOURCE),
    "generation": _CHAT_LATER,
}
_LATER: Final[Tables] = {
    role: (*_unprefixed(ATTRIBUTES.get(role, ())), *_ONLY_LATER.get(role, ()))
    for role in dict.fromkeys((*ATTRIBUTES, *_ONLY_LATER))
}
ATTRIBUTES_AND_LATER: Final = merged({role: _under_both(rows) for role, rows in ATTRIBUTES.items()}, _ONLY_LATER)
"""With the same values under the names of later AITF releases and of the CoSAI table."""
DOCUMENT_AND_LATER: Final = _under_both(DOCUMENT)
"""What is said of a document, under both names."""

_TITLES: Final[Mapping[Role, str]] = {
    "session": "`rag.pipeline {pipeline}`, INTERNAL",
    "query": "`rag.query {pipeline}`, INTERNAL",
    "retrieval": "`rag.retrieve {database}`, CLIENT",
    "rerank": "`rag.rerank {model}`, CLIENT",
    "generation": "`chat {model}`, CLIENT",
    "evaluation": "`rag.evaluate {pipeline}`, INTERNAL",
}


def _sections(tables: Tables, documents: tuple[Row[Any], ...]) -> tuple[Section, ...]:
    return (
        *(Section(_TITLES[role], rows) for role, rows in tables.items()),
        Section("event `rag.doc.retrieved` of a retrieval, one for each chunk", documents),
    )


AITF: Final = Standard(
    name="AITF RAG_CONTEXT",
    version="as CoSAI WS2 aligned it",
    note=(
        "A required text that nobody gave is `unknown`. `rag.query`, and a root that came to no answer, have the stage "
        "`query`, which the list of stages in AITF's schema of a trace lacks, because AITF's mappers report a span "
        "without a stage, or with `retrieve`, as a vector search. Escalations and feedback, which AITF does not know, "
        "are named outside of `rag.`."
    ),
    unsaid=(
        "The query's text, which the specification requires: its digest is sent in its place. Snippets of "
        "documents. Numbers that nobody gave."
    ),
    checked="AITF's mappers to OCSF of February and July 2026, by the activity they make of each stage.",
    sections=_sections(ATTRIBUTES, DOCUMENT),
)
AITF_LATER: Final = Standard(
    name="AITF, later releases and CoSAI names",
    version="0.2",
    note="The same values under the names that later releases read; `later_names=False` leaves them out.",
    unsaid=(
        "`gen_ai.retrieval.query.text`, where these releases look for the query: it is promised that no text is sent."
    ),
    checked=(
        "AITF's JSON Schema of a trace (version 0.2), tried by hand: all is of its type; it knows fewer "
        "operations and providers than OpenTelemetry, whose names are sent, and no stage `query`."
    ),
    sections=_sections(_LATER, _unprefixed(DOCUMENT)),
)
