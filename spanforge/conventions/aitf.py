"""AITF, RAG_CONTEXT: the span attributes of the specification, and the names that its later releases read.

Where the text asks for the query, its digest is sent: the raw query never leaves the call (ADR-006).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

from spanforge.conventions._table import Attributes, Level, Row, Section, Standard, collect, encode
from spanforge.conventions.session import labelled
from spanforge.conventions.spans import MAX_DOCUMENTS, Node, Role, Tables, read
from spanforge.namespaces._payload import Payload
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RetrievedChunk,
)

__all__ = [
    "AITF",
    "AITF_LATER",
    "attributes",
    "attributes_and_later",
    "document",
    "document_and_later",
    "retrieval_digest",
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


def _query_digest(node: Node[Payload]) -> str:
    return node.facts.query


def retrieval_digest(node: Node[RetrievalResultPayload]) -> str:
    """Return the digest of the query a retrieval answered, as `algorithm:hex`; empty if nobody gave one."""
    return labelled(node.facts.algorithm, node.payload.query_hash) or node.facts.query


def _documents(node: Node[RetrievalResultPayload]) -> str | None:
    """Return the documents as JSON: id, score and provenance, never a snippet."""
    if not node.payload.chunks:
        return None
    listed = [
        {"id": chunk.chunk_id, "score": chunk.score, "provenance": chunk.source}
        if chunk.source
        else {"id": chunk.chunk_id, "score": chunk.score}
        for chunk in islice(node.payload.chunks, MAX_DOCUMENTS)
    ]
    return encode(listed)


def _filters(node: Node[Payload]) -> str | None:
    return encode(node.facts.filters) if node.facts.filters else None


def _scores(node: Node[RetrievalResultPayload]) -> list[float]:
    return [chunk.score for chunk in node.payload.chunks]


PIPELINE: Final[tuple[_Root, ...]] = (
    Row(
        "aitf.rag.pipeline.name",
        _REQUIRED,
        lambda n: n.facts.pipeline,
        "query.pipeline_name",
        "NIST AI RMF MAP-1.1",
    ),
    Row(
        "aitf.rag.pipeline.stage",
        _REQUIRED,
        lambda n: n.session.reached,
        "the furthest stage there is",
        _MEASURE,
    ),
    Row("aitf.rag.query", _REQUIRED, _query_digest, "query.query_hash with its algorithm", _INJECTION),
)
QUERY: Final[tuple[_Query, ...]] = (
    Row("aitf.rag.query", _REQUIRED, _query_digest, "query.query_hash with its algorithm", _INJECTION),
    Row(
        "aitf.rag.query.embedding_model",
        _RECOMMENDED,
        lambda n: n.payload.embedding_model,
        "query.embedding_model",
        _MODEL,
    ),
    Row(
        "aitf.rag.query.embedding_dimensions",
        _OPTIONAL,
        lambda n: n.payload.embedding_dimensions,
        "query.embedding_dimensions",
    ),
)
RETRIEVE: Final[tuple[_Retrieve, ...]] = (
    Row(
        "aitf.rag.retrieve.database",
        _REQUIRED,
        lambda n: n.facts.database,
        "query.retriever_name",
        "OWASP LLM08, MITRE ATLAS AML.T0043",
    ),
    Row("aitf.rag.query", _REQUIRED, retrieval_digest, "retrieved.query_hash with its algorithm", _INJECTION),
    Row(
        "aitf.rag.retrieve.index",
        _RECOMMENDED,
        lambda n: n.facts.index,
        "query.namespace",
        "NIST AI RMF MAP-1.5",
    ),
    Row("aitf.rag.retrieve.top_k", _RECOMMENDED, lambda n: n.facts.top_k, "query.top_k", _MEASURE),
    Row("aitf.rag.retrieve.filter", _OPTIONAL, _filters, "query.filters as JSON"),
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
        lambda n: min(_scores(n), default=None),
        "lowest of retrieved.chunks[].score",
        f"OWASP LLM08, {_MEASURE}",
    ),
    Row(
        "aitf.rag.retrieve.max_score",
        _RECOMMENDED,
        lambda n: max(_scores(n), default=None),
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
    Row(
        "aitf.rag.doc.provenance",
        _RECOMMENDED,
        lambda c: c.source,
        "chunk.source",
        "OWASP LLM09, EU AI Act Art. 13",
    ),
)
RERANK: Final[tuple[_Rerank, ...]] = (
    Row("aitf.rag.rerank.model", _REQUIRED, lambda n: n.payload.model, "reranked.model", _MODEL),
    Row(
        "aitf.rag.rerank.input_count",
        _REQUIRED,
        lambda n: n.payload.input_count,
        "reranked.input_count",
        _MEASURE,
    ),
    Row(
        "aitf.rag.rerank.output_count",
        _REQUIRED,
        lambda n: n.payload.output_count,
        "reranked.output_count",
        _MEASURE,
    ),
)
EVALUATE: Final[tuple[_Evaluate, ...]] = (
    Row(
        "aitf.rag.quality.context_relevance",
        _RECOMMENDED,
        lambda n: n.payload.context_relevance,
        "evaluated.context_relevance",
        _MEASURE,
    ),
    Row(
        "aitf.rag.quality.answer_relevance",
        _RECOMMENDED,
        lambda n: n.payload.answer_relevance,
        "evaluated.answer_relevance",
        _MEASURE,
    ),
    Row(
        "aitf.rag.quality.faithfulness",
        _RECOMMENDED,
        lambda n: n.payload.faithfulness,
        "evaluated.faithfulness",
        f"OWASP LLM09, {_MEASURE}",
    ),
    Row(
        "aitf.rag.quality.groundedness",
        _RECOMMENDED,
        lambda n: n.payload.groundedness,
        "evaluated.groundedness",
        "OWASP LLM09, EU AI Act Art. 13",
    ),
)

_REPLACED: Final = frozenset({"aitf.rag.query", "aitf.rag.retrieve.database"})
"""Later releases have other names for these two; they stand in the rows below."""


def _unprefixed(rows: tuple[Row[Any], ...]) -> tuple[Row[Any], ...]:
    return tuple(
        Row(row.key.removeprefix("aitf."), row.level, row.read, row.origin, row.compliance)
        for row in rows
        if row.key not in _REPLACED
    )


_QUERY_TEXT: Final[Row[Node[Payload]]] = Row(
    "rag.query.text",
    _REQUIRED,
    _query_digest,
    "query.query_hash with its algorithm; never the text",
    _INJECTION,
)
_SOURCE: Final[tuple[_Retrieve, ...]] = (
    Row(
        "gen_ai.data_source.id",
        _REQUIRED,
        lambda n: n.facts.database,
        "query.retriever_name",
        "NIST AI RMF MAP-1.5",
    ),
    Row("rag.database.name", _REQUIRED, lambda n: n.facts.database, "query.retriever_name", "CoSAI WS2"),
)
_SYSTEM: Final[tuple[_Chat, ...]] = (
    Row("gen_ai.system", _OPTIONAL, lambda n: n.payload.provider, "generated.provider"),
)

_TABLES: Final[Tables] = {
    "session": PIPELINE,
    "query": QUERY,
    "retrieval": RETRIEVE,
    "rerank": RERANK,
    "evaluation": EVALUATE,
}
_ONLY_LATER: Final[Tables] = {
    "session": (_QUERY_TEXT,),
    "query": (_QUERY_TEXT,),
    "retrieval": (_QUERY_TEXT, *_SOURCE),
    "generation": _SYSTEM,
}
_LATER: Final[Tables] = {
    role: (*_unprefixed(_TABLES.get(role, ())), *_ONLY_LATER.get(role, ()))
    for role in dict.fromkeys((*_TABLES, *_ONLY_LATER))
}


def attributes(node: Node[Payload]) -> Attributes:
    """Return the attributes of the specification for one span."""
    return read(_TABLES, node)


def attributes_and_later(node: Node[Payload]) -> Attributes:
    """Return them, and the same values under the names of later AITF releases and of the CoSAI table."""
    return {**_both(read(_TABLES, node)), **read(_ONLY_LATER, node)}


def document(chunk: RetrievedChunk) -> Attributes:
    """Return the attributes of one `rag.doc.retrieved` event."""
    return collect(DOCUMENT, chunk)


def document_and_later(chunk: RetrievedChunk) -> Attributes:
    """Return the attributes of one `rag.doc.retrieved` event under both names."""
    return _both(collect(DOCUMENT, chunk))


def _both(found: Attributes) -> Attributes:
    """Add the unprefixed names."""
    later = {key.removeprefix("aitf."): value for key, value in found.items() if key not in _REPLACED}
    return {**found, **later}


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
        "The specification requires the query's text; its digest is sent in its place. A required value that "
        "nobody gave is `unknown`."
    ),
    sections=_sections(_TABLES, DOCUMENT),
)
AITF_LATER: Final = Standard(
    name="AITF, later releases and CoSAI names",
    version="0.2",
    note="The same values under the names that later releases read; `later_names=False` leaves them out.",
    sections=_sections(_LATER, _unprefixed(DOCUMENT)),
)
