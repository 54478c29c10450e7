"""OpenInference: what Phoenix and its kin read. Inputs and outputs are there, and say `__REDACTED__`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Final, TypeAlias

from spanforge.namespaces.feedback import FeedbackSubmittedPayload
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.providers import MAKERS, well_known
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RetrievedChunk,
)
from spanforge.standards._table import Level, Row, Section, Standard, encode, field_row
from spanforge.standards.genai import SCORES
from spanforge.standards.tree.relations import all_tokens, chunks_before
from spanforge.standards.tree.spans import MAX_DOCUMENTS, ROLES, Node, Role, Tables, merged, scored_document

__all__ = ["ATTRIBUTES", "ATTRIBUTES_WITH_USER", "OPENINFERENCE", "REDACTED", "hides_documents", "hiding"]

_Any: TypeAlias = Row[Node[Payload]]
_Query: TypeAlias = Row[Node[RetrievalQueryPayload]]
_Retrieve: TypeAlias = Row[Node[RetrievalResultPayload]]
_Rerank: TypeAlias = Row[Node[RerankPayload]]
_Chat: TypeAlias = Row[Node[RAGSpanPayload]]
_Evaluated: TypeAlias = Row[Node[RAGEvaluationPayload]]
_Feedback: TypeAlias = Row[Node[FeedbackSubmittedPayload]]
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

_PROVIDERS: Final = {**MAKERS, "mistral_ai": "mistralai", "moonshot_ai": "moonshot", "x_ai": "xai"}
"""What OpenInference calls a provider, where OpenTelemetry calls it otherwise."""


def _metadata(chunk: RetrievedChunk) -> str | None:
    known: dict[str, Any] = {"source": chunk.source, "content_hash": chunk.content_hash, "rank": chunk.rank}
    said = {**chunk.metadata, **{name: value for name, value in known.items() if value}}
    return encode(said) if said else None


def _provider(node: Node[RAGSpanPayload]) -> str | None:
    known = well_known(node.payload.provider)
    return _PROVIDERS.get(known, known) if known else None


def _grounding(node: Node[RAGSpanPayload]) -> list[dict[str, object]]:
    score = node.payload.grounding_score
    return [] if score is None else [{"name": "groundedness", "score": score}]


def _evaluations(node: Node[RAGEvaluationPayload]) -> list[dict[str, object]]:
    said = ((name, getattr(node.payload, name)) for name in SCORES)
    evaluator = node.payload.evaluator
    return [{"name": name, "score": score, "identifier": evaluator} for name, score in said if score is not None]


def _documents(prefix: str, chunks: Callable[[Node[Any]], Chunks], origin: str) -> Row[Any]:
    def read(node: Node[Any]) -> list[dict[str, object]]:
        return [
            {**scored_document(chunk), "metadata": _metadata(chunk)} for chunk in islice(chunks(node), MAX_DOCUMENTS)
        ]

    said = "id, score, and metadata: source, content_hash, rank and metadata, as JSON"
    return Row(f"{prefix}.{{n}}.document", _OPTIONAL, read, f"{origin}[]: {said}")


def _feedback(node: Node[FeedbackSubmittedPayload]) -> list[dict[str, object]]:
    payload = node.payload
    said = {"label": payload.rating.value, "score": payload.value, "identifier": payload.feedback_id}
    return [{"name": "feedback", "annotator_kind": "HUMAN", **said}]


def _redacted(_: object) -> str:
    return REDACTED


EVERYWHERE: Final[tuple[_Any, ...]] = (
    Row("openinference.span.kind", Level.REQUIRED, lambda n: _KINDS[n.role], "what the span stands for"),
    Row(
        "session.id",
        _OPTIONAL,
        lambda n: n.session.conversation_id or n.session.session_id,
        "conversation_id, else session_id",
    ),
    Row("input.value", _OPTIONAL, _redacted, "constant: content is never sent"),
    Row("output.value", _OPTIONAL, _redacted, "constant: content is never sent"),
)
EMBEDDING: Final[tuple[_Query, ...]] = (field_row("embedding.model_name", _OPTIONAL, "query.embedding_model"),)
RETRIEVER: Final[tuple[_Retrieve, ...]] = (
    _documents("retrieval.documents", lambda node: node.payload.chunks, "retrieved.chunks"),
)
RERANKER: Final[tuple[_Rerank, ...]] = (
    field_row("reranker.model_name", _OPTIONAL, "reranked.model"),
    field_row("reranker.top_k", _OPTIONAL, "reranked.output_count"),
    Row("reranker.query", _OPTIONAL, _redacted, "constant: content is never sent"),
    _documents(
        "reranker.input_documents",
        lambda node: chunks_before(node.session, node),
        "retrieved.chunks of all retrievals before, each once",
    ),
    _documents("reranker.output_documents", lambda node: node.payload.chunks, "reranked.chunks"),
)
LLM: Final[tuple[_Chat, ...]] = (
    field_row("llm.model_name", _OPTIONAL, "generated.model"),
    Row("llm.provider", _OPTIONAL, _provider, "generated.provider, by OpenInference's name for it"),
    field_row("llm.request.model_name", _OPTIONAL, "generated.model"),
    field_row("llm.response.model_name", _OPTIONAL, "generated.response_model"),
    field_row("llm.finish_reason", _OPTIONAL, "generated.finish_reason"),
    field_row("llm.token_count.prompt", _OPTIONAL, "generated.prompt_tokens"),
    field_row("llm.token_count.completion", _OPTIONAL, "generated.output_tokens"),
    Row(
        "llm.token_count.total", _OPTIONAL, all_tokens, "generated.prompt_tokens + output_tokens, where both are known"
    ),
    field_row("llm.token_count.prompt_details.cache_read", _OPTIONAL, "generated.cached_tokens"),
    field_row("llm.token_count.prompt_details.cache_write", _OPTIONAL, "generated.cache_write_tokens"),
    field_row("llm.token_count.completion_details.reasoning", _OPTIONAL, "generated.reasoning_tokens"),
    field_row("llm.cost.total", _OPTIONAL, "generated.cost_usd"),
    Row(
        "evaluations.{n}.evaluation",
        _OPTIONAL,
        _grounding,
        "name and score of generated.grounding_score, where there is one",
    ),
)
EVALUATOR: Final[tuple[_Evaluated, ...]] = (
    Row(
        "trace.evaluations.{n}.evaluation",
        _OPTIONAL,
        _evaluations,
        "name and score of each evaluated field, with evaluated.evaluator as identifier",
    ),
)
FEEDBACK: Final[tuple[_Feedback, ...]] = (
    Row(
        "trace.annotations.{n}.annotation",
        _OPTIONAL,
        _feedback,
        "name, annotator_kind (a human), label (submitted.rating), score (submitted.value), identifier (feedback_id)",
    ),
)
USER: Final[tuple[_Any, ...]] = (
    Row("user.id", _OPTIONAL, lambda n: n.event.actor_id, "actor_id; only with `user_ids=True`"),
)

ATTRIBUTES: Final = merged(
    dict.fromkeys(ROLES, EVERYWHERE),
    {
        "embeddings": EMBEDDING,
        "retrieval": RETRIEVER,
        "rerank": RERANKER,
        "generation": LLM,
        "evaluation": EVALUATOR,
        "feedback": FEEDBACK,
    },
)
"""The attributes of each kind of span."""
ATTRIBUTES_WITH_USER: Final = merged(ATTRIBUTES, dict.fromkeys(ROLES, USER))
"""With whom it was made for."""

_HIDDEN: Final = {
    "inputs": ("input.", "reranker.input_documents.", "reranker.query"),
    "outputs": (
        "output.",
        "retrieval.documents.",
        "reranker.output_documents.",
        # What went into a rerank is what a retrieval brought, and the other standards say it again.
        "reranker.input_documents.",
        "aitf.rag.retrieval.docs",
        "gen_ai.retrieval.documents",
    ),
}
"""What each `OPENINFERENCE_HIDE_*` switch takes away, in whichever standard it stands."""


def hides_documents(hidden: frozenset[str]) -> bool:
    """Tell whether the switches hide the documents of a retrieval."""
    return "outputs" in hidden


def hiding(hidden: frozenset[str], tables: Tables) -> Tables:
    """Return the rows of any standard without those that the `OPENINFERENCE_HIDE_*` switches hide.

    Args:
        hidden: Of `inputs` and `outputs`, those that are switched on. The other switches of OpenInference are
            about messages, prompts, choices, images and vectors, none of which is ever sent.
        tables: The rows.
    """
    prefixes = tuple(prefix for name in sorted(hidden & _HIDDEN.keys()) for prefix in _HIDDEN[name])
    return {role: tuple(row for row in rows if _is_shown(row, prefixes)) for role, rows in tables.items()}


def _is_shown(row: Row[Any], prefixes: tuple[str, ...]) -> bool:
    # The word that says that something was held back stays.
    return row.read is _redacted or not row.key.startswith(prefixes)


OPENINFERENCE: Final = Standard(
    name="OpenInference",
    version="openinference-semantic-conventions 0.1.42",
    note=(
        "`OPENINFERENCE_HIDE_INPUTS` takes away the reranker's input documents, `OPENINFERENCE_HIDE_OUTPUTS` "
        "the documents a retrieval or rerank brought, with every copy of them under the names of other "
        "standards. Scores that were given with an answer stand on it as `evaluations`; those of an "
        "evaluation, and people's feedback, stand on spans of their own and are about the trace."
    ),
    unsaid="Content of any kind: inputs, outputs and the reranker's query are `__REDACTED__`. Messages and prompts.",
    checked="The constants of that package, each attribute by name; Phoenix and MLflow, which read the spans.",
    sections=(
        Section("every span", EVERYWHERE),
        Section("EMBEDDING", EMBEDDING),
        Section("RETRIEVER", RETRIEVER),
        Section("RERANKER", RERANKER),
        Section("LLM", LLM),
        Section("EVALUATOR", EVALUATOR),
        Section("feedback", FEEDBACK),
        Section("every span, with `user_ids=True`", USER),
    ),
)
