"""Every type of event: its name, its payload class, and what part it has in a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from spanforge.namespaces.feedback import FeedbackSubmittedPayload
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import (
    EscalationPayload,
    RAGEvaluationPayload,
    RAGSessionPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
)

__all__ = [
    "ESCALATED",
    "EVALUATED",
    "FEEDBACK",
    "GENERATED",
    "PAYLOADS",
    "QUERY",
    "RERANKED",
    "RETRIEVED",
    "SESSION",
    "STAGES",
    "STAGE_TYPES",
    "STAGE_WORDS",
    "WORDS",
    "Role",
    "Stage",
]

QUERY: Final = "llm.rag.query"
RETRIEVED: Final = "llm.rag.retrieved"
RERANKED: Final = "llm.rag.reranked"
GENERATED: Final = "llm.rag.generated"
EVALUATED: Final = "llm.rag.evaluated"
SESSION: Final = "llm.rag.session"
ESCALATED: Final = "llm.rag.escalated"
FEEDBACK: Final = "llm.feedback.submitted"

Role: TypeAlias = Literal["stage", "summary", "signal"]
"""A stage is added up; a summary tells what the stages come to; a signal says something about the session."""


class Stage(NamedTuple):
    """One type of event.

    Attributes:
        event_type: Its name in the envelope.
        payload: The class of its payload.
        role: What part it has in a session.
        word: What people call it: on pages, in metrics and in tables.
    """

    event_type: str
    payload: type[Payload]
    role: Role
    word: str

    @property
    def counts(self) -> bool:
        """True where the fold of a session adds it up."""
        return self.role == "stage"


STAGES: Final = (
    Stage(QUERY, RetrievalQueryPayload, "stage", "query"),
    Stage(RETRIEVED, RetrievalResultPayload, "stage", "retrieval"),
    Stage(RERANKED, RerankPayload, "stage", "rerank"),
    Stage(GENERATED, RAGSpanPayload, "stage", "generation"),
    Stage(EVALUATED, RAGEvaluationPayload, "stage", "evaluation"),
    Stage(SESSION, RAGSessionPayload, "summary", "summary"),
    Stage(ESCALATED, EscalationPayload, "signal", "escalation"),
    Stage(FEEDBACK, FeedbackSubmittedPayload, "signal", "feedback"),
)

PAYLOADS: Final[Mapping[str, type[Payload]]] = {stage.event_type: stage.payload for stage in STAGES}
"""The payload class of each type of event."""

WORDS: Final[Mapping[str, str]] = {stage.event_type: stage.word for stage in STAGES}
"""The word for each type of event."""

STAGE_TYPES: Final = frozenset(stage.event_type for stage in STAGES if stage.counts)
"""The types of event that a session's figures are added up from."""

STAGE_WORDS: Final = tuple(stage.word for stage in STAGES if stage.counts)
"""Their words, in the order in which they run."""
