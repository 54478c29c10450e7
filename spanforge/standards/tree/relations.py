"""Which stages belong together: what a rerank was given, and which generation an evaluation judged."""

from __future__ import annotations

from typing import Protocol, TypeVar

from spanforge.namespaces.event import Event
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import RAGEvaluationPayload, RAGSpanPayload, RerankPayload, RetrievedChunk
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.stages import Stage

__all__ = ["all_tokens", "chunks_before", "judged_by"]

P_co = TypeVar("P_co", bound=Payload, covariant=True)


class _Part(Protocol[P_co]):
    """A stage of a session, or the node made of it."""

    @property
    def event(self) -> Event: ...
    @property
    def payload(self) -> P_co: ...


def all_tokens(generation: _Part[RAGSpanPayload]) -> int | None:
    """Return how many tokens a generation took and gave; None unless both are known."""
    prompt, output = generation.payload.prompt_tokens, generation.payload.output_tokens
    return None if prompt is None or output is None else prompt + output


def chunks_before(session: Session, rerank: _Part[RerankPayload]) -> tuple[RetrievedChunk, ...]:
    """Return the chunks that all retrievals before a rerank brought, each once, as it came first."""
    chunks: dict[str, RetrievedChunk] = {}
    for retrieval in session.retrievals:
        if retrieval.event.event_id < rerank.event.event_id:
            for chunk in retrieval.payload.chunks:
                chunks.setdefault(chunk.chunk_id, chunk)
    return tuple(chunks.values())


def judged_by(session: Session, evaluation: _Part[RAGEvaluationPayload]) -> Stage[RAGSpanPayload] | None:
    """Return the generation an evaluation judged: the last of the name it says, else the last that succeeded."""
    name = evaluation.payload.span_name
    before = [one for one in session.generations if one.event.event_id < evaluation.event.event_id]
    meant = [one for one in before if (one.payload.span_name == name if name else one.payload.status == "ok")]
    return meant[-1] if meant else None
