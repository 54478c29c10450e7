"""OpenTelemetry semantic conventions for generative AI, 0.1 (status: Development).

The query's text is never sent (`gen_ai.retrieval.query.text`), and a retrieval names neither provider nor model:
consumers take a span with one for an inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from spanforge.conventions._table import Attributes, Level, Row, Section, Standard, collect, encode
from spanforge.conventions.session import Session
from spanforge.conventions.spans import MAX_DOCUMENTS, Node, Tables, error_type, nodes, read
from spanforge.namespaces._payload import Payload
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSpanPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
)

__all__ = ["GENAI", "EvaluationResult", "attributes", "attributes_with_documents", "evaluation_results"]

_Any: TypeAlias = Row[Node[Payload]]
_Embeddings: TypeAlias = Row[Node[RetrievalQueryPayload]]
_Retrieve: TypeAlias = Row[Node[RetrievalResultPayload]]
_Chat: TypeAlias = Row[Node[RAGSpanPayload]]
_Result: TypeAlias = Row[tuple[str, float]]

_REQUIRED, _CONDITIONAL, _RECOMMENDED = Level.REQUIRED, Level.CONDITIONAL, Level.RECOMMENDED


def _documents(node: Node[RetrievalResultPayload]) -> str | None:
    listed = [{"id": chunk.chunk_id, "score": chunk.score} for chunk in islice(node.payload.chunks, MAX_DOCUMENTS)]
    return encode(listed) if listed else None


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


_EVERYWHERE: Final[tuple[_Any, ...]] = (
    Row(
        "gen_ai.conversation.id",
        _CONDITIONAL,
        lambda n: n.session.session_id if n.session.named_by_caller else None,
        "session_id, where the application chose it",
    ),
    Row("error.type", _CONDITIONAL, error_type, "`timeout`, or error_message where it is a class or code"),
)
EMBEDDINGS: Final[tuple[_Embeddings, ...]] = (
    Row("gen_ai.operation.name", _REQUIRED, lambda _: "embeddings", "constant"),
    Row("gen_ai.provider.name", _REQUIRED, lambda _: None, "not known of an embedding: `unknown`"),
    Row("gen_ai.request.model", _CONDITIONAL, lambda n: n.payload.embedding_model, "query.embedding_model"),
    Row(
        "gen_ai.embeddings.dimension.count",
        _RECOMMENDED,
        lambda n: n.payload.embedding_dimensions,
        "query.embedding_dimensions",
    ),
)
RETRIEVAL: Final[tuple[_Retrieve, ...]] = (
    Row("gen_ai.operation.name", _REQUIRED, lambda _: "retrieval", "constant"),
    Row("gen_ai.data_source.id", _CONDITIONAL, lambda n: n.facts.database, "query.retriever_name"),
    Row("gen_ai.retrieval.top_k", _RECOMMENDED, lambda n: n.facts.top_k, "query.top_k"),
)
CHAT: Final[tuple[_Chat, ...]] = (
    Row("gen_ai.operation.name", _REQUIRED, lambda _: "chat", "constant"),
    Row("gen_ai.provider.name", _REQUIRED, lambda n: n.payload.provider, "generated.provider"),
    Row("gen_ai.request.model", _CONDITIONAL, lambda n: n.payload.model, "generated.model"),
    Row(
        "gen_ai.usage.input_tokens",
        _RECOMMENDED,
        lambda n: n.payload.prompt_tokens,
        "generated.prompt_tokens",
    ),
    Row(
        "gen_ai.usage.output_tokens",
        _RECOMMENDED,
        lambda n: n.payload.output_tokens,
        "generated.output_tokens",
    ),
    Row(
        "gen_ai.response.finish_reasons",
        _RECOMMENDED,
        lambda n: (n.payload.finish_reason,) if n.payload.finish_reason else None,
        "generated.finish_reason",
    ),
    Row(
        "gen_ai.response.time_to_first_chunk",
        _RECOMMENDED,
        lambda n: _seconds(n.payload.time_to_first_token_ms),
        "generated.time_to_first_token_ms, in seconds",
    ),
)
DOCUMENTS: Final[tuple[_Retrieve, ...]] = (
    Row(
        "gen_ai.retrieval.documents",
        Level.OPT_IN,
        _documents,
        "retrieved.chunks as JSON, id and score; only with `genai_documents=True`",
    ),
)
EVALUATION: Final[tuple[_Result, ...]] = (
    Row("gen_ai.evaluation.name", _REQUIRED, lambda r: r[0], "name of the evaluated field"),
    Row("gen_ai.evaluation.score.value", _CONDITIONAL, lambda r: r[1], "its value"),
)

_TABLES: Final[Tables] = {
    "session": _EVERYWHERE,
    "query": _EVERYWHERE,
    "embeddings": (*EMBEDDINGS, *_EVERYWHERE),
    "retrieval": (*RETRIEVAL, *_EVERYWHERE),
    "rerank": _EVERYWHERE,
    "generation": (*CHAT, *_EVERYWHERE),
    "evaluation": _EVERYWHERE,
}
_SCORES: Final = ("context_relevance", "answer_relevance", "faithfulness", "groundedness")


def attributes(node: Node[Payload]) -> Attributes:
    """Return the attributes of one span."""
    return read(_TABLES, node)


def attributes_with_documents(node: Node[Payload]) -> Attributes:
    """Return the attributes of one span, and the opt-in list of documents on a retrieval."""
    return {**read(_TABLES, node), **read({"retrieval": DOCUMENTS}, node)}


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """A `gen_ai.evaluation.result` event: a log record under the span that was evaluated.

    Attributes:
        time_ns: When it was evaluated, nanoseconds since the epoch.
        trace_id: Trace of the evaluated span.
        span_id: The evaluated span: the last generation before the evaluation, else the session's root.
        attributes: Name and score.
    """

    time_ns: int
    trace_id: str
    span_id: str
    attributes: Attributes


def evaluation_results(session: Session) -> tuple[EvaluationResult, ...]:
    """Return one result for each score of each evaluation."""
    results: list[EvaluationResult] = []
    evaluated: Node[Payload] | None = None
    for node in nodes(session):
        if node.role == "generation":
            evaluated = node
        if isinstance(node.payload, RAGEvaluationPayload):
            # An evaluation's own parent is the session's root.
            span_id = evaluated.span_id if evaluated else node.parent_span_id
            results += (
                EvaluationResult(node.end_ns, node.trace_id, span_id, collect(EVALUATION, (name, score)))
                for name in _SCORES
                if (score := getattr(node.payload, name)) is not None
            )
    return tuple(results)


GENAI: Final = Standard(
    name="OpenTelemetry GenAI",
    version="semantic-conventions-genai 0.1, Development",
    note="`gen_ai.retrieval.query.text` is never sent. A required value that nobody gave is `unknown`.",
    sections=(
        Section("`embeddings {model}`, CLIENT", EMBEDDINGS),
        Section("`rag.retrieve {database}`, CLIENT", (*RETRIEVAL, *DOCUMENTS)),
        Section("`chat {model}`, CLIENT", CHAT),
        Section("every span", _EVERYWHERE),
        Section("log record `gen_ai.evaluation.result`, under the evaluated span", EVALUATION),
    ),
)
