"""What no standard has a name for: attributes under `spanforge.`, on the same spans."""

from __future__ import annotations

from typing import Final, TypeAlias

from spanforge._text import well_formed
from spanforge.conventions._table import Attributes, Level, Row, Section, Standard
from spanforge.conventions.spans import Node, Tables, read
from spanforge.namespaces._payload import Payload
from spanforge.namespaces.feedback import FeedbackSubmittedPayload
from spanforge.namespaces.retrieval import (
    EscalationPayload,
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RetrievalResultPayload,
)

__all__ = ["OWN", "attributes"]

_OWN: Final = Level.OWN

_Any: TypeAlias = Row[Node[Payload]]

EVERYWHERE: Final[tuple[_Any, ...]] = (
    Row("spanforge.event_id", _OWN, lambda n: n.event.event_id, "event_id"),
    Row("spanforge.org_id", _OWN, lambda n: n.event.org_id, "org_id"),
    Row("spanforge.team_id", _OWN, lambda n: n.event.team_id, "team_id"),
)
SESSION: Final[tuple[Row[Node[RAGSessionPayload]], ...]] = (
    Row("spanforge.session.end_reason", _OWN, lambda n: n.payload.end_reason, "session.end_reason"),
    Row("spanforge.session.error_count", _OWN, lambda n: n.payload.error_count, "session.error_count"),
    Row(
        "spanforge.session.grounding.avg",
        _OWN,
        lambda n: n.payload.avg_grounding_score,
        "session.avg_grounding_score",
    ),
    Row(
        "spanforge.session.grounding.min",
        _OWN,
        lambda n: n.payload.min_grounding_score,
        "session.min_grounding_score",
    ),
)
RETRIEVAL: Final[tuple[Row[Node[RetrievalResultPayload]], ...]] = (
    Row("spanforge.retrieval.status", _OWN, lambda n: n.payload.status, "retrieved.status"),
    Row("spanforge.retrieval.total_found", _OWN, lambda n: n.payload.total_found, "retrieved.total_found"),
    Row(
        "spanforge.retrieval.strategy",
        _OWN,
        lambda n: n.payload.retrieval_strategy,
        "retrieved.retrieval_strategy",
    ),
    Row(
        "spanforge.retrieval.ranking_method",
        _OWN,
        lambda n: n.payload.ranking_method,
        "retrieved.ranking_method",
    ),
)
GENERATION: Final[tuple[Row[Node[RAGSpanPayload]], ...]] = (
    Row("spanforge.grounding_score", _OWN, lambda n: n.payload.grounding_score, "generated.grounding_score"),
    Row("spanforge.context_tokens", _OWN, lambda n: n.payload.context_tokens, "generated.context_tokens"),
    Row(
        "spanforge.chunks_used",
        _OWN,
        lambda n: len(n.payload.chunk_ids_used),
        "number of generated.chunk_ids_used",
    ),
    Row("spanforge.span_name", _OWN, lambda n: n.payload.span_name, "generated.span_name"),
)
EVALUATION: Final[tuple[Row[Node[RAGEvaluationPayload]], ...]] = (
    Row("spanforge.evaluator", _OWN, lambda n: n.payload.evaluator, "evaluated.evaluator"),
    Row("spanforge.claims.total", _OWN, lambda n: n.payload.claims_total, "evaluated.claims_total"),
    Row("spanforge.claims.supported", _OWN, lambda n: n.payload.claims_supported, "evaluated.claims_supported"),
)
ESCALATION: Final[tuple[Row[Node[EscalationPayload]], ...]] = (
    Row("spanforge.escalation.rule", _OWN, lambda n: n.payload.rule, "escalated.rule"),
    Row("spanforge.escalation.trigger", _OWN, lambda n: n.payload.trigger, "escalated.trigger"),
    Row("spanforge.escalation.level", _OWN, lambda n: n.payload.level, "escalated.level"),
    Row("spanforge.escalation.value", _OWN, lambda n: n.payload.value, "escalated.value"),
    Row("spanforge.escalation.threshold", _OWN, lambda n: n.payload.threshold, "escalated.threshold"),
)
FEEDBACK: Final[tuple[Row[Node[FeedbackSubmittedPayload]], ...]] = (
    Row("spanforge.feedback.rating", _OWN, lambda n: n.payload.rating.value, "submitted.rating"),
    Row("spanforge.feedback.value", _OWN, lambda n: n.payload.value, "submitted.value"),
    Row("spanforge.feedback.source", _OWN, lambda n: n.payload.source, "submitted.source"),
)

_TABLES: Final[Tables] = {
    "session": SESSION,
    "retrieval": RETRIEVAL,
    "generation": GENERATION,
    "evaluation": EVALUATION,
    "escalation": ESCALATION,
    "feedback": FEEDBACK,
}


def attributes(node: Node[Payload]) -> Attributes:
    """Return our own attributes of one span, and the event's tags as `spanforge.tag.*`."""
    found = read({node.role: EVERYWHERE}, node)
    found.update(read(_TABLES, node))
    found.update((f"spanforge.tag.{well_formed(key)}", well_formed(value)) for key, value in node.event.tags.items())
    return found


OWN: Final = Standard(
    name="spanforge",
    version="1",
    note="Facts that none of the standards names. Tags become `spanforge.tag.*`.",
    sections=(
        Section("every span", EVERYWHERE),
        Section("`rag.pipeline {pipeline}`", SESSION),
        Section("`rag.retrieve {database}`", RETRIEVAL),
        Section("`chat {model}`", GENERATION),
        Section("`rag.evaluate {pipeline}`", EVALUATION),
        Section("`rag.escalate {rule}`, INTERNAL, no duration", ESCALATION),
        Section("`feedback {rating}`, INTERNAL, no duration", FEEDBACK),
    ),
)
