"""What no standard has a name for: attributes under `spanforge.`, on the same spans."""

from __future__ import annotations

from typing import Final, TypeAlias

from spanforge.namespaces.feedback import FeedbackSubmittedPayload
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import (
    EscalationPayload,
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RetrievalResultPayload,
)
from spanforge.standards._table import Level, Row, Section, Standard, field_row
from spanforge.standards.tree.relations import judged_by
from spanforge.standards.tree.spans import ROLES, Node, Tables, merged, span_id_of

__all__ = ["ATTRIBUTES", "OWN"]

_OWN: Final = Level.OWN

_Any: TypeAlias = Row[Node[Payload]]

EVERYWHERE: Final[tuple[_Any, ...]] = (
    Row("spanforge.event_id", _OWN, lambda n: n.event.event_id, "event_id"),
    Row("spanforge.org_id", _OWN, lambda n: n.event.org_id, "org_id"),
    Row("spanforge.team_id", _OWN, lambda n: n.event.team_id, "team_id"),
    Row(
        "spanforge.time.reconstructed",
        _OWN,
        lambda n: n.reconstructed or None,
        "true where the stage was reported after the fact, and start and end were worked out",
    ),
    Row("spanforge.tag.{n}", _OWN, lambda n: n.event.tags, "tags, each under its key"),
)
SESSION: Final[tuple[Row[Node[RAGSessionPayload]], ...]] = (
    field_row("spanforge.session.end_reason", _OWN, "session.end_reason"),
    field_row(
        "spanforge.session.duration_ms",
        _OWN,
        "session.duration_ms, wall clock: the span also covers what began before the session was opened",
    ),
    field_row("spanforge.session.error_count", _OWN, "session.error_count"),
    field_row("spanforge.session.grounding.avg", _OWN, "session.avg_grounding_score"),
    field_row("spanforge.session.grounding.min", _OWN, "session.min_grounding_score"),
)
RETRIEVAL: Final[tuple[Row[Node[RetrievalResultPayload]], ...]] = (
    field_row("spanforge.retrieval.status", _OWN, "retrieved.status"),
    field_row("spanforge.retrieval.total_found", _OWN, "retrieved.total_found"),
    field_row("spanforge.retrieval.strategy", _OWN, "retrieved.retrieval_strategy"),
    field_row("spanforge.retrieval.ranking_method", _OWN, "retrieved.ranking_method"),
)
GENERATION: Final[tuple[Row[Node[RAGSpanPayload]], ...]] = (
    field_row("spanforge.grounding_score", _OWN, "generated.grounding_score"),
    field_row("spanforge.context_tokens", _OWN, "generated.context_tokens"),
    Row(
        "spanforge.chunks_used",
        _OWN,
        lambda n: len(n.payload.chunk_ids_used) or None,
        "number of generated.chunk_ids_used, where there are any",
    ),
    field_row("spanforge.span_name", _OWN, "generated.span_name"),
    field_row("spanforge.generation.status", _OWN, "generated.status"),
    field_row("spanforge.cost_usd", _OWN, "generated.cost_usd"),
    field_row("spanforge.cost_basis", _OWN, "generated.cost_basis, where it is an estimate"),
)
EVALUATION: Final[tuple[Row[Node[RAGEvaluationPayload]], ...]] = (
    field_row("spanforge.evaluator", _OWN, "evaluated.evaluator"),
    Row(
        "spanforge.evaluation.of",
        _OWN,
        lambda n: span_id_of(judged.event) if (judged := judged_by(n.session, n)) else None,
        "span of the generation that was judged: the one evaluated.span_name names, else the last that succeeded",
    ),
    field_row("spanforge.claims.total", _OWN, "evaluated.claims_total"),
    field_row("spanforge.claims.supported", _OWN, "evaluated.claims_supported"),
)
ESCALATION: Final[tuple[Row[Node[EscalationPayload]], ...]] = (
    field_row("spanforge.escalation.rule", _OWN, "escalated.rule"),
    field_row("spanforge.escalation.trigger", _OWN, "escalated.trigger"),
    field_row("spanforge.escalation.level", _OWN, "escalated.level"),
    field_row("spanforge.escalation.value", _OWN, "escalated.value"),
    field_row("spanforge.escalation.threshold", _OWN, "escalated.threshold"),
)
FEEDBACK: Final[tuple[Row[Node[FeedbackSubmittedPayload]], ...]] = (
    Row("spanforge.feedback.rating", _OWN, lambda n: n.payload.rating.value, "submitted.rating"),
    field_row("spanforge.feedback.value", _OWN, "submitted.value"),
    field_row("spanforge.feedback.source", _OWN, "submitted.source"),
)

_OF_ROLE: Final[Tables] = {
    "session": SESSION,
    "retrieval": RETRIEVAL,
    "generation": GENERATION,
    "evaluation": EVALUATION,
    "escalation": ESCALATION,
    "feedback": FEEDBACK,
}


ATTRIBUTES: Final = merged(dict.fromkeys(ROLES, EVERYWHERE), _OF_ROLE)
"""Our own attributes of each kind of span."""


OWN: Final = Standard(
    name="spanforge",
    version="1",
    note="Facts that none of the standards names.",
    unsaid="Nothing that the events say.",
    checked="No outside tool: the names are ours.",
    sections=(
        Section("every span", EVERYWHERE),
        Section("`rag.pipeline {pipeline}`", SESSION),
        Section("`rag.retrieve {database}`", RETRIEVAL),
        Section("`chat {model}`", GENERATION),
        Section("`rag.evaluate {pipeline}`", EVALUATION),
        Section("`escalate {rule}`, INTERNAL, no duration", ESCALATION),
        Section("`feedback {rating}`, INTERNAL, no duration", FEEDBACK),
    ),
)
