"""OpenTelemetry semantic conventions for generative AI, 0.1 (status: Development).

The query's text is never sent (`gen_ai.retrieval.query.text`), and a retrieval names neither provider nor model:
consumers take a span with one for an inference. What nobody said is left out, numbers above all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from spanforge.namespaces.payload import Payload
from spanforge.namespaces.providers import well_known
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
)
from spanforge.standards._table import Attributes, Level, Row, Section, Standard, collect, encode, field_row
from spanforge.standards.tree.relations import judged_by
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import (
    MAX_DOCUMENTS,
    Node,
    Tables,
    merged,
    parent_span_id_of,
    scored_document,
    span_id_of,
    trace_id_of,
)
from spanforge.standards.tree.stages import Stage

__all__ = [
    "ATTRIBUTES",
    "ATTRIBUTES_WITH_DOCUMENTS",
    "GENAI",
    "SCHEMA_URL",
    "SCORES",
    "EvaluationResult",
    "evaluation_results",
]

_Any: TypeAlias = Row[Node[Payload]]
_Root: TypeAlias = Row[Node[RAGSessionPayload]]
_Embeddings: TypeAlias = Row[Node[RetrievalQueryPayload]]
_Retrieve: TypeAlias = Row[Node[RetrievalResultPayload]]
_Chat: TypeAlias = Row[Node[RAGSpanPayload]]
_Result: TypeAlias = Row[tuple[str, float]]

_REQUIRED, _CONDITIONAL, _RECOMMENDED = Level.REQUIRED, Level.CONDITIONAL, Level.RECOMMENDED


def _documents(node: Node[RetrievalResultPayload]) -> str | None:
    listed = [scored_document(chunk) for chunk in islice(node.payload.chunks, MAX_DOCUMENTS)]
    return encode(listed) if listed else None


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The semantic conventions that name what resources and spans say; those of GenAI publish no schema of their own."""


def _finish_reasons(node: Node[RAGSpanPayload]) -> tuple[str, ...] | None:
    payload = node.payload
    return payload.finish_reasons or ((payload.finish_reason,) if payload.finish_reason else None)


def _streamed(node: Node[RAGSpanPayload]) -> bool | None:
    """Tell whether the answer was a stream; the first token of one is a moment that nothing else has."""
    payload = node.payload
    return payload.stream if payload.stream is not None else payload.time_to_first_token_ms is not None or None


_EVERYWHERE: Final[tuple[_Any, ...]] = (
    Row(
        "gen_ai.conversation.id",
        _CONDITIONAL,
        lambda n: n.session.conversation_id,
        "conversation_id, else session_id where the application chose it",
    ),
    Row(
        "error.type",
        _CONDITIONAL,
        lambda n: n.error_type,
        "`timeout`, or error_message where it is a class or code; of the root, that of the stage it failed with",
    ),
)
WORKFLOW: Final[tuple[_Root, ...]] = (
    Row("gen_ai.operation.name", _REQUIRED, lambda _: "invoke_workflow", "constant"),
    field_row("gen_ai.workflow.name", _CONDITIONAL, "query.pipeline_name"),
)
EMBEDDINGS: Final[tuple[_Embeddings, ...]] = (
    Row("gen_ai.operation.name", _REQUIRED, lambda _: "embeddings", "constant"),
    Row(
        "gen_ai.provider.name",
        _REQUIRED,
        lambda n: well_known(n.payload.embedding_provider),
        "query.embedding_provider, by its well-known name",
    ),
    field_row("gen_ai.request.model", _CONDITIONAL, "query.embedding_model"),
    field_row("gen_ai.embeddings.dimension.count", _RECOMMENDED, "query.embedding_dimensions"),
)
RETRIEVAL: Final[tuple[_Retrieve, ...]] = (
    Row("gen_ai.operation.name", _REQUIRED, lambda _: "retrieval", "constant"),
    field_row("gen_ai.data_source.id", _CONDITIONAL, "query.retriever_name"),
    field_row("gen_ai.retrieval.top_k", _RECOMMENDED, "query.top_k, where it was said"),
)
CHAT: Final[tuple[_Chat, ...]] = (
    Row("gen_ai.operation.name", _REQUIRED, lambda _: "chat", "constant"),
    Row(
        "gen_ai.provider.name",
        _REQUIRED,
        lambda n: well_known(n.payload.provider),
        "generated.provider, by its well-known name",
    ),
    field_row("gen_ai.request.model", _CONDITIONAL, "generated.model"),
    field_row("gen_ai.usage.input_tokens", _RECOMMENDED, "generated.prompt_tokens"),
    field_row("gen_ai.usage.output_tokens", _RECOMMENDED, "generated.output_tokens"),
    Row(
        "gen_ai.response.finish_reasons", _RECOMMENDED, _finish_reasons, "generated.finish_reasons, else finish_reason"
    ),
    field_row("gen_ai.request.temperature", _RECOMMENDED, "generated.temperature"),
    Row(
        "gen_ai.request.stream",
        _CONDITIONAL,
        _streamed,
        "generated.stream, or true where there is a time to the first token",
    ),
    field_row("gen_ai.response.id", _RECOMMENDED, "generated.response_id"),
    field_row("gen_ai.response.model", _RECOMMENDED, "generated.response_model"),
    field_row("gen_ai.usage.cache_read.input_tokens", _RECOMMENDED, "generated.cached_tokens"),
    *(
        Row(key, _RECOMMENDED, lambda n: n.payload.cache_write_tokens, origin)
        for key, origin in (
            ("gen_ai.usage.cache_write.input_tokens", "generated.cache_write_tokens"),
            ("gen_ai.usage.cache_creation.input_tokens", "generated.cache_write_tokens: its name before 0.1"),
        )
    ),
    field_row("gen_ai.usage.reasoning.output_tokens", _RECOMMENDED, "generated.reasoning_tokens"),
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

ATTRIBUTES: Final[Tables] = {
    "session": (*WORKFLOW, *_EVERYWHERE),
    "query": _EVERYWHERE,
    "embeddings": (*EMBEDDINGS, *_EVERYWHERE),
    "retrieval": (*RETRIEVAL, *_EVERYWHERE),
    "rerank": _EVERYWHERE,
    "generation": (*CHAT, *_EVERYWHERE),
    "evaluation": _EVERYWHERE,
}
"""The attributes of each kind of span."""
ATTRIBUTES_WITH_DOCUMENTS: Final[Tables] = merged(ATTRIBUTES, {"retrieval": DOCUMENTS})
"""With the opt-in list of documents on a retrieval."""
SCORES: Final = ("context_relevance", "answer_relevance", "faithfulness", "groundedness")


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """A `gen_ai.evaluation.result` event: a log record under the span that was evaluated.

    Attributes:
        event_id: The event it comes from.
        time_ns: When it was evaluated, nanoseconds since the epoch.
        trace_id: Trace of the evaluated span.
        span_id: The evaluated span: the generation that was judged, else the session's root.
        attributes: Name and score.
    """

    event_id: str
    time_ns: int
    trace_id: str
    span_id: str
    attributes: Attributes


def evaluation_results(session: Session) -> tuple[EvaluationResult, ...]:
    """Return one result for each score of each evaluation."""
    return tuple(result for stage in session.evaluations for result in _results(session, stage))


def _results(session: Session, stage: Stage[RAGEvaluationPayload]) -> Iterator[EvaluationResult]:
    event, judged = stage.event, judged_by(session, stage)
    # An evaluation's own parent is the session's root.
    span_id = span_id_of(judged.event) if judged else parent_span_id_of(event)
    for name in SCORES:
        if (score := getattr(stage.payload, name)) is not None:
            said = collect(EVALUATION, (name, score))
            yield EvaluationResult(event.event_id, stage.end_ns, trace_id_of(event), span_id, said)


GENAI: Final = Standard(
    name="OpenTelemetry GenAI",
    version="semantic-conventions-genai 0.1, Development",
    note=(
        "A required text that nobody gave is `unknown`. Spans are named as AITF names them, the retrieval "
        'CLIENT, unless the sink is told `span_names="genai"`: then the root is `invoke_workflow {pipeline}` '
        "and the retrieval `retrieval {database}`, INTERNAL."
    ),
    unsaid=(
        "`gen_ai.retrieval.query.text` and messages: no text is sent. Provider and model of a retrieval: "
        "consumers take a span with one for an inference. `server.address` and `server.port`: nobody tells "
        "the SDK. Numbers that nobody gave."
    ),
    checked=(
        "`opentelemetry-semantic-conventions` 0.66b2 and `pytest-genai-semconv` 0.1.0, each attribute by name"
        " and type; both know `cache_creation` where 0.1 says `cache_write`. OTLP itself: "
        "`opentelemetry-proto` and Rotel, a collector, by HTTP and gRPC; MLflow and Phoenix read the spans."
    ),
    sections=(
        Section("`rag.pipeline {pipeline}` or `invoke_workflow {pipeline}`, INTERNAL", WORKFLOW),
        Section("`embeddings {model}`, CLIENT", EMBEDDINGS),
        Section("`rag.retrieve {database}`, CLIENT", (*RETRIEVAL, *DOCUMENTS)),
        Section("`chat {model}`, CLIENT", CHAT),
        Section("every span", _EVERYWHERE),
        Section("log record `gen_ai.evaluation.result`, under the evaluated span", EVALUATION),
    ),
)
