"""The retrieval-transparency record of a session (com.ragu.retrieval-transparency 1.0.0).

The record says what the trace says. Where the trace does not say enough, or would make a record that is not
true, there is none, and the reason is a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import Any, Final, NoReturn, TypeAlias

from spanforge._text import well_formed
from spanforge.exceptions import SpanforgeError
from spanforge.namespaces.ceiling import described
from spanforge.namespaces.retrieval import RetrievalResultPayload, RetrievedChunk
from spanforge.standards._table import Level, Row, Section, Standard
from spanforge.standards.tez import source_of
from spanforge.standards.tree.layout import union_ns
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.stages import Stage

__all__ = ["TRANSPARENCY", "TransparencyError", "problems", "transparency"]

_Record: TypeAlias = Row["_Run"]

_DONE: Final = frozenset({"ok", "partial"})
_MS: Final = 1_000_000
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
        self.reranks = [r.payload for r in session.reranks if r.payload.status in _DONE]

    @property
    def best(self) -> list[RetrievedChunk]:
        """Each chunk once, with the best score a retrieval gave it, highest first."""
        chunks: dict[str, RetrievedChunk] = {}
        for chunk in (chunk for retrieval in self.retrievals for chunk in retrieval.chunks):
            known = chunks.get(chunk.chunk_id)
            if known is None or _score(chunk) > _score(known):
                chunks[chunk.chunk_id] = chunk
        # By id where scores are equal, so that the same session makes the same record.
        return sorted(chunks.values(), key=lambda chunk: (-_score(chunk), chunk.chunk_id))

    @property
    def used(self) -> set[str]:
        """Ids of the chunks that were passed to generations."""
        return {chunk_id for stage in self.session.generations for chunk_id in stage.payload.chunk_ids_used}


def _said(run: _Run, field: str, what: str) -> str:
    """Return what every retrieval says of itself; one that failed need not say it."""
    values = {getattr(r, field) for r in run.retrievals if r.status in _DONE or getattr(r, field)}
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


def _score(chunk: RetrievedChunk) -> float:
    return -1.0 if chunk.score is None else chunk.score


def _scores(run: _Run) -> list[dict[str, object]]:
    if any(chunk.score is None for chunk in run.best):
        _refuse("a chunk has no score; pass metric= to trace_retrieval() where the store gives numbers")
    return [
        {
            "chunk_id": well_formed(chunk.chunk_id),
            "score": chunk.score,
            "source_item_id": well_formed(run.item_id(chunk)),
        }
        for chunk in run.best
    ]


def _time(run: _Run) -> int:
    """Return how long the retrieval ran by the clock: what ran side by side counts once."""
    retrievals = (_timed(run, stage) for stage in run.session.retrievals)
    stages = (*run.session.queries, *retrievals, *run.session.reranks)
    return min(round(union_ns(stages) / _MS), _MAX_MS)


def _timed(run: _Run, retrieval: Stage[RetrievalResultPayload]) -> Stage[RetrievalResultPayload]:
    """Return a retrieval with the time it took: since its query was traced, where it does not say."""
    if retrieval.payload.latency_ms is not None or retrieval.payload.status not in _DONE:
        return retrieval
    before = (query for query in run.session.queries if query.event.event_id < retrieval.event.event_id)
    asked = max((query.end_ns for query in before), default=retrieval.end_ns)
    if retrieval.end_ns - asked < _MS:
        # Reported when it was over: that no time has passed says nothing.
        _refuse("neither a retrieval nor the clock says how long it took; pass latency_ms= to trace_retrieval()")
    return retrieval._replace(start_ns=asked)


def _reranker(run: _Run) -> str | None:
    models = {rerank.model for rerank in run.reranks}
    if len(models) > 1:
        _refuse("the session reranked with more than one model, and the record has room for one")
    return well_formed(models.pop()) if models else None


def _exhausted(run: _Run) -> bool | None:
    said = [r.budget_exhausted for r in run.retrievals if r.budget_exhausted is not None]
    return any(said) if said else None


def _ceiling(run: _Run) -> str | None:
    said = (described(r.ceiling_reached) for r in run.retrievals if r.ceiling_reached)
    return "; ".join(dict.fromkeys(one for one in said if one)) or None


_TIMED: Final = (
    "time in which a query, retrieval or rerank ran, rounded; a retrieval without latency_ms ran since its query"
)
RECORD: Final[tuple[_Record, ...]] = (
    Row(
        "retrieval_strategy",
        Level.REQUIRED,
        lambda r: _said(r, "retrieval_strategy", "retrieval strategy"),
        "retrieved.retrieval_strategy, the same for all",
    ),
    Row("chunks_retrieved", Level.REQUIRED, lambda r: len(r.best), "distinct ids of retrieved.chunks, before rerank"),
    Row("chunks_evaluated", Level.REQUIRED, _evaluated, "distinct generated.chunk_ids_used"),
    Row("similarity_scores", Level.REQUIRED, _scores, "retrieved.chunks: the best score of each, descending"),
    Row(
        "ranking_method",
        Level.REQUIRED,
        lambda r: _said(r, "ranking_method", "ranking method"),
        "retrieved.ranking_method, the same for all",
    ),
    Row("retrieval_time_ms", Level.REQUIRED, _time, _TIMED),
    Row("reranking_applied", Level.REQUIRED, lambda r: bool(r.reranks), "a reranked event that did not fail"),
    Row("reranking_model", Level.CONDITIONAL, _reranker, "reranked.model, where rerank was applied"),
    Row("retrieval_budget_exhausted", Level.OPTIONAL, _exhausted, "retrieved.budget_exhausted of any"),
    Row("ceiling_reached", Level.OPTIONAL, _ceiling, "retrieved.ceiling_reached, joined; numbers and known words"),
)


def transparency(
    session: Session, item_id: Callable[[RetrievedChunk], str] = source_of, items: Collection[str] | None = None
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
        "Strategy and ranking method come from the trace; where the application never said or mixed them, the"
        " export refuses rather than guesses. The schema requires a time: where a retrieval does not say how "
        "long it took, it is the time since its query was traced, and where none has passed, there is no "
        "record."
    ),
    unsaid=(
        "Descriptions of a ceiling that are not made of numbers and known words. The chunks' content hashes, "
        "for which the schema has no room: a bundle has them in a file beside the record."
    ),
    checked="The extension's JSON Schema, on random sessions; Tez's schemas, on bundles.",
    sections=(Section("`retrieval-transparency.json`", RECORD),),
)
