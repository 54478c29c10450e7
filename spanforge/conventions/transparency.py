"""The retrieval-transparency record of a session (com.ragu.retrieval-transparency 1.0.0).

The record says what the trace says. Where the trace does not say enough, or would make a record that is not
true, there is none, and the reason is a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NoReturn, TypeAlias, cast

from spanforge._text import well_formed
from spanforge.conventions._table import Level, Row, Section, Standard
from spanforge.conventions.session import Session
from spanforge.exceptions import SpanforgeError
from spanforge.namespaces.retrieval import (
    RetrievedChunk,
)

__all__ = ["TRANSPARENCY", "TransparencyError", "problems", "transparency"]

_Record: TypeAlias = Row["_Run"]

_MAX_MS: Final = 1 << 53
"""The largest whole number that every JSON reader keeps exact."""


class TransparencyError(SpanforgeError, ValueError):
    """The trace of a session does not support a transparency record; the message says what is missing."""


def _refuse(why: str) -> NoReturn:
    raise TransparencyError(f"no transparency record: {why}")


class _Run:
    """What a record is made of.

    Args:
        session: The session.
        item_id: Gives the context item a chunk comes from.
    """

    def __init__(self, session: Session, item_id: Callable[[RetrievedChunk], str]) -> None:
        self.session = session
        self.item_id = item_id
        self.retrievals = [stage.payload for stage in session.retrievals]
        self.reranks = [r.payload for r in session.reranks if r.payload.status in {"ok", "partial"}]

    @property
    def best(self) -> list[RetrievedChunk]:
        """Each chunk once, with the best score a retrieval gave it, highest first."""
        chunks: dict[str, RetrievedChunk] = {}
        for chunk in (chunk for retrieval in self.retrievals for chunk in retrieval.chunks):
            known = chunks.get(chunk.chunk_id)
            if known is None or chunk.score > known.score:
                chunks[chunk.chunk_id] = chunk
        # By id where scores are equal, so that the same session makes the same record.
        return sorted(chunks.values(), key=lambda chunk: (-chunk.score, chunk.chunk_id))

    @property
    def used(self) -> set[str]:
        """Ids of the chunks that were passed to generations."""
        return {chunk_id for stage in self.session.generations for chunk_id in stage.payload.chunk_ids_used}


def _said(run: _Run, field: str, what: str) -> str:
    """Return what every retrieval says of itself; one that failed need not say it."""
    values = {getattr(r, field) for r in run.retrievals if r.status in {"ok", "partial"} or getattr(r, field)}
    if not run.retrievals:
        _refuse("the session has no retrieval")
    if not values or None in values:
        _refuse(f"a retrieval does not say its {what}; pass {field}= to trace_retrieval()")
    if len(values) > 1:
        _refuse(f"the session mixed {what} values, and the record has room for one")
    return str(values.pop())


def _evaluated(run: _Run) -> int:
    used, retrieved = len(run.used), len(run.best)
    if used > retrieved:
        _refuse("more chunks were passed to the model than retrieved; the trace lacks a retrieval")
    return used


def _scores(run: _Run) -> list[dict[str, object]]:
    return [
        {
            "chunk_id": well_formed(chunk.chunk_id),
            "score": chunk.score,
            "source_item_id": well_formed(run.item_id(chunk)),
        }
        for chunk in run.best
    ]


def _time(run: _Run) -> int:
    stages = (*run.session.queries, *run.session.retrievals, *run.session.reranks)
    return round(min(sum(stage.payload.latency_ms for stage in stages), float(_MAX_MS)))


def _reranker(run: _Run) -> str | None:
    models = {rerank.model for rerank in run.reranks}
    if len(models) > 1:
        _refuse("the session reranked with more than one model, and the record has room for one")
    return well_formed(models.pop()) if models else None


def _exhausted(run: _Run) -> bool | None:
    said = [r.budget_exhausted for r in run.retrievals if r.budget_exhausted is not None]
    return any(said) if said else None


def _ceiling(run: _Run) -> str | None:
    said = dict.fromkeys(r.ceiling_reached for r in run.retrievals if r.ceiling_reached)
    return well_formed("; ".join(cast("Iterable[str]", said))) or None


RECORD: Final[tuple[_Record, ...]] = (
    Row(
        "retrieval_strategy",
        Level.REQUIRED,
        lambda r: _said(r, "retrieval_strategy", "retrieval strategy"),
        "retrieved.retrieval_strategy, the same for all",
    ),
    Row(
        "chunks_retrieved",
        Level.REQUIRED,
        lambda r: len(r.best),
        "distinct ids of retrieved.chunks, before rerank",
    ),
    Row("chunks_evaluated", Level.REQUIRED, _evaluated, "distinct generated.chunk_ids_used"),
    Row(
        "similarity_scores",
        Level.REQUIRED,
        _scores,
        "retrieved.chunks: the best score of each, descending",
    ),
    Row(
        "ranking_method",
        Level.REQUIRED,
        lambda r: _said(r, "ranking_method", "ranking method"),
        "retrieved.ranking_method, the same for all",
    ),
    Row("retrieval_time_ms", Level.REQUIRED, _time, "latency_ms of queries, retrievals and reranks, rounded"),
    Row("reranking_applied", Level.REQUIRED, lambda r: bool(r.reranks), "a reranked event that did not fail"),
    Row("reranking_model", Level.CONDITIONAL, _reranker, "reranked.model, where rerank was applied"),
    Row("retrieval_budget_exhausted", Level.OPTIONAL, _exhausted, "retrieved.budget_exhausted of any"),
    Row("ceiling_reached", Level.OPTIONAL, _ceiling, "retrieved.ceiling_reached, joined"),
)


def _own_source(chunk: RetrievedChunk) -> str:
    return chunk.source or chunk.chunk_id


def transparency(
    session: Session,
    item_id: Callable[[RetrievedChunk], str] = _own_source,
    items: Collection[str] | None = None,
) -> dict[str, Any]:
    """Return the retrieval-transparency record of a session.

    Args:
        session: The session.
        item_id: Gives the id of the context item a chunk comes from; its source, else its own id, by default.
        items: Ids of the bundle's context items, where the record goes into a bundle.

    Raises:
        TransparencyError: The trace does not say the strategy or the ranking method, mixes them, or would
            make a record that contradicts itself.
    """
    run = _Run(session, item_id)
    record = {row.key: value for row in RECORD if (value := row.read(run)) is not None}
    for problem in problems(record, items):
        _refuse(problem)
    return record


def problems(record: Mapping[str, Any], items: Collection[str] | None = None) -> list[str]:
    """Return what is wrong with a record beyond what its JSON Schema can say.

    Args:
        record: A record that passes the schema.
        items: Ids of the context items of the bundle it stands in.
    """
    scores: list[dict[str, Any]] = record["similarity_scores"]
    found: list[str] = []
    if record["chunks_evaluated"] > record["chunks_retrieved"]:
        found.append("more chunks were evaluated than retrieved")
    if any(not 0.0 <= entry["score"] <= 1.0 for entry in scores):
        found.append("a score is outside [0, 1]")
    if any(before["score"] < after["score"] for before, after in pairwise(scores)):
        found.append("the scores do not descend")
    if items is not None and any(entry["source_item_id"] not in items for entry in scores):
        found.append("a chunk comes from a source that is not among the bundle's context items")
    return found


TRANSPARENCY: Final = Standard(
    name="Retrieval transparency",
    version="com.ragu.retrieval-transparency 1.0.0",
    note=(
        "Strategy and ranking method come from the trace; where the application never said or mixed them, "
        "the export refuses rather than guesses."
    ),
    sections=(Section("`retrieval-transparency.json`", RECORD),),
)
