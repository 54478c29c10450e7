"""OpenInference: what Phoenix and its kin read. Inputs and outputs are there, and say `__REDACTED__`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

from spanforge.conventions._table import Attributes, Level, Row, Section, Standard, encode
from spanforge.conventions.spans import MAX_DOCUMENTS, Node, Role, Tables, read
from spanforge.namespaces._payload import Payload
from spanforge.namespaces.retrieval import (
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RetrievedChunk,
)

__all__ = ["OPENINFERENCE", "REDACTED", "attributes", "hiding"]

_Any: TypeAlias = Row[Node[Payload]]
_Query: TypeAlias = Row[Node[RetrievalQueryPayload]]
_Retrieve: TypeAlias = Row[Node[RetrievalResultPayload]]
_Rerank: TypeAlias = Row[Node[RerankPayload]]
_Chat: TypeAlias = Row[Node[RAGSpanPayload]]
Chunks: TypeAlias = tuple[RetrievedChunk, ...]

REDACTED: Final = "__REDACTED__"
"""OpenInference's own word for content that was held back."""

_OPTIONAL: Final = Level.OPTIONAL
_KINDS: Final[dict[Role, str]] = {
    "session": "CHAIN",
    "query": "CHAIN",
    "embeddings": "EMBEDDING",
    "retrieval": "RETRIEVER",
    "rerank": "RERANKER",
    "generation": "LLM",
    "evaluation": "EVALUATOR",
    "escalation": "CHAIN",
    "feedback": "CHAIN",
}


def _metadata(chunk: RetrievedChunk) -> str | None:
    known: dict[str, Any] = {"source": chunk.source, "content_hash": chunk.content_hash, "rank": chunk.rank}
    said = {**chunk.metadata, **{name: value for name, value in known.items() if value}}
    return encode(said) if said else None


def _ids(chunks: Chunks) -> list[str]:
    return [chunk.chunk_id for chunk in islice(chunks, MAX_DOCUMENTS)]


def _scores(chunks: Chunks) -> list[float]:
    return [chunk.score for chunk in islice(chunks, MAX_DOCUMENTS)]


def _metadatas(chunks: Chunks) -> list[str | None]:
    return [_metadata(chunk) for chunk in islice(chunks, MAX_DOCUMENTS)]


def _retrieved(node: Node[RetrievalResultPayload]) -> Chunks:
    return node.payload.chunks


def _reranked(node: Node[RerankPayload]) -> Chunks:
    return node.payload.chunks


def _before_rerank(node: Node[RerankPayload]) -> Chunks:
    """Return what the latest retrieval before a rerank brought."""
    earlier = [r for r in node.session.retrievals if r.event.event_id < node.event.event_id]
    return earlier[-1].payload.chunks if earlier else ()


def _documents(prefix: str, chunks: Callable[[Node[Any]], Chunks], origin: str) -> tuple[Row[Any], ...]:
    return (
        Row(f"{prefix}.{{n}}.document.id", _OPTIONAL, lambda n: _ids(chunks(n)), f"{origin}[].chunk_id"),
        Row(f"{prefix}.{{n}}.document.score", _OPTIONAL, lambda n: _scores(chunks(n)), f"{origin}[].score"),
        Row(
            f"{prefix}.{{n}}.document.metadata",
            _OPTIONAL,
            lambda n: _metadatas(chunks(n)),
            f"{origin}[]: source, content_hash, rank and metadata, as JSON",
        ),
    )


EVERYWHERE: Final[tuple[_Any, ...]] = (
    Row("openinference.span.kind", Level.REQUIRED, lambda n: _KINDS[n.role], "what the span stands for"),
    Row("session.id", _OPTIONAL, lambda n: n.session.session_id, "session_id"),
    Row("input.value", _OPTIONAL, lambda _: REDACTED, "constant: content is never sent"),
    Row("output.value", _OPTIONAL, lambda _: REDACTED, "constant: content is never sent"),
)
EMBEDDING: Final[tuple[_Query, ...]] = (
    Row("embedding.model_name", _OPTIONAL, lambda n: n.payload.embedding_model, "query.embedding_model"),
)
RETRIEVER: Final[tuple[_Retrieve, ...]] = _documents("retrieval.documents", _retrieved, "retrieved.chunks")
RERANKER: Final[tuple[_Rerank, ...]] = (
    Row("reranker.model_name", _OPTIONAL, lambda n: n.payload.model, "reranked.model"),
    Row("reranker.top_k", _OPTIONAL, lambda n: n.payload.output_count, "reranked.output_count"),
    Row("reranker.query", _OPTIONAL, lambda _: REDACTED, "constant: content is never sent"),
    *_documents("reranker.input_documents", _before_rerank, "retrieved.chunks of the retrieval before"),
    *_documents("reranker.output_documents", _reranked, "reranked.chunks"),
)
LLM: Final[tuple[_Chat, ...]] = (
    Row("llm.model_name", _OPTIONAL, lambda n: n.payload.model, "generated.model"),
    Row("llm.provider", _OPTIONAL, lambda n: n.payload.provider, "generated.provider"),
    Row("llm.finish_reason", _OPTIONAL, lambda n: n.payload.finish_reason, "generated.finish_reason"),
    Row("llm.token_count.prompt", _OPTIONAL, lambda n: n.payload.prompt_tokens, "generated.prompt_tokens"),
    Row("llm.token_count.completion", _OPTIONAL, lambda n: n.payload.output_tokens, "generated.output_tokens"),
    Row(
        "llm.token_count.total",
        _OPTIONAL,
        lambda n: n.payload.prompt_tokens + n.payload.output_tokens,
        "generated.prompt_tokens + output_tokens",
    ),
)

_TABLES: Final[Tables] = {
    **dict.fromkeys(_KINDS, EVERYWHERE),
    "embeddings": (*EVERYWHERE, *EMBEDDING),
    "retrieval": (*EVERYWHERE, *RETRIEVER),
    "rerank": (*EVERYWHERE, *RERANKER),
    "generation": (*EVERYWHERE, *LLM),
}

_HIDDEN: Final = {
    "inputs": ("input.", "reranker.input_documents.", "reranker.query"),
    "outputs": ("output.", "retrieval.documents.", "reranker.output_documents."),
}
"""What each `OPENINFERENCE_HIDE_*` switch takes away, where there is content behind it here."""


def attributes(node: Node[Payload]) -> Attributes:
    """Return the attributes of one span."""
    return read(_TABLES, node)


def hiding(hidden: frozenset[str]) -> Callable[[Node[Payload]], Attributes]:
    """Return `attributes` without what the `OPENINFERENCE_HIDE_*` switches hide.

    Args:
        hidden: Of `inputs` and `outputs`, those that are switched on. The other switches of OpenInference are
            about messages, prompts, choices, images and vectors, none of which is ever sent.
    """
    prefixes = tuple(prefix for name in sorted(hidden & _HIDDEN.keys()) for prefix in _HIDDEN[name])
    return partial(_without, prefixes) if prefixes else attributes


def _without(prefixes: tuple[str, ...], node: Node[Payload]) -> Attributes:
    return {
        key: value
        for key, value in read(_TABLES, node).items()
        # The word that says that something was held back stays.
        if value == REDACTED or not key.startswith(prefixes)
    }


OPENINFERENCE: Final = Standard(
    name="OpenInference",
    version="openinference-semantic-conventions 0.1",
    note=(
        "Content is `__REDACTED__`. `OPENINFERENCE_HIDE_INPUTS` takes away the reranker's input documents, "
        "`OPENINFERENCE_HIDE_OUTPUTS` the documents a retrieval or rerank brought."
    ),
    sections=(
        Section("every span", EVERYWHERE),
        Section("EMBEDDING", EMBEDDING),
        Section("RETRIEVER", RETRIEVER),
        Section("RERANKER", RERANKER),
        Section("LLM", LLM),
    ),
)
