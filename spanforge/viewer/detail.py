"""One session as the page shows it: when each stage ran, what became of each chunk, and what was said of the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from spanforge.analysis import StoredSession
from spanforge.namespaces.event import Event
from spanforge.namespaces.feedback import FeedbackSubmittedPayload
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import (
    EscalationPayload,
    RAGEvaluationPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalResultPayload,
    RetrievedChunk,
)
from spanforge.namespaces.stages import STAGE_WORDS, WORDS
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.stages import Stage

__all__ = ["MOST_CHUNKS", "MOST_EVENTS", "Bar", "ChunkRow", "Detail", "Ranking", "Tick", "detail"]

MOST_EVENTS: Final = 2_000
MOST_CHUNKS: Final = 200
_LEAST_WIDTH: Final = 0.4
_TICKS: Final = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One event on the timeline.

    Attributes:
        stage: Its kind, as one word; `about` is what it worked with.
        start_us: Microseconds since the session began; `length_us` how long it took.
        left: Where it begins, in percent of the timeline; `width` likewise. None for events without a length.
        status: `ok`, `partial`, `error` or `timeout`; `error` is the class or code of what went wrong.
    """

    stage: str
    about: str
    start_us: int
    length_us: int
    left: float
    width: float | None
    status: str
    error: str
    event_id: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the axis: microseconds since the session began, and percent of the timeline."""

    us: int
    left: float


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """What became of one chunk.

    Attributes:
        rank: Place in the retrieval, from 1; None where only the rerank has it.
        reranked: Place after the rerank; None where it was cut, or nothing was reranked.
        moved: Places it gained by the rerank.
        used: Passed to a generation.
        cited: Cited by the answer, where the trace says so.
    """

    rank: int | None
    chunk: RetrievedChunk
    reranked: int | None
    reranked_score: float | None
    moved: int | None
    used: bool
    cited: bool | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """A retrieval, and the rerank that followed it.

    Attributes:
        rows: At most `MOST_CHUNKS`, in the last order there is; `hidden` is how many more there are.
        used: How many distinct chunks were passed to a generation.
        says_cited: Whether the trace says of any chunk that the answer cites it.
    """

    retrieval: RetrievalResultPayload
    rerank: RerankPayload | None
    rows: list[ChunkRow]
    hidden: int
    used: int
    says_cited: bool


@dataclass(frozen=True, slots=True)
class Detail:
    """A session (see `spanforge.analysis.StoredSession` for what the summary means).

    Attributes:
        unread: Events of a type, or with a payload, that this version cannot read.
        together: Some stages were reported at once, after the fact: the bars say how long each took, and not when.
        length_us: From the first start to the last end.
    """

    stored: StoredSession
    session: Session
    unread: int
    bars: list[Bar]
    together: bool
    ticks: list[Tick]
    length_us: int
    rankings: list[Ranking]
    generations: list[RAGSpanPayload]
    evaluations: list[RAGEvaluationPayload]
    escalations: list[EscalationPayload]
    feedback: list[FeedbackSubmittedPayload]


def detail(session_id: str, events: Sequence[Event]) -> Detail:
    """Return what the page of a session shows.

    Args:
        session_id: The session.
        events: Its events, at least one.
    """
    session = Session(events)
    lanes, together = _lanes(session)
    length = max((lane.end_us for lane in lanes), default=0)
    return Detail(
        stored=StoredSession(session_id, events),
        session=session,
        unread=session.unread,
        bars=[_bar(lane, length) for lane in lanes],
        together=together,
        ticks=_ticks(length),
        length_us=length,
        rankings=_rankings(session),
        generations=[stage.payload for stage in session.generations],
        evaluations=[stage.payload for stage in session.evaluations],
        escalations=[stage.payload for stage in session.of(EscalationPayload)],
        feedback=[stage.payload for stage in session.of(FeedbackSubmittedPayload)],
    )


class _Lane(NamedTuple):
    """A stage, and where it is drawn: microseconds since the session began."""

    stage: Stage[Payload]
    kind: str
    start_us: int
    end_us: int


def _lanes(session: Session) -> tuple[list[_Lane], bool]:
    """Place the stages in time, in the order in which they ended, and tell whether that had to be worked out."""
    lanes = [
        _Lane(stage, WORDS[stage.event.event_type], stage.start_ns // 1000, stage.end_ns // 1000)
        for stage in session.stages
    ]
    timed = [lane for lane in lanes if lane.kind in STAGE_WORDS] or lanes
    begin = min((lane.start_us for lane in timed), default=0)
    wall = max((lane.end_us for lane in timed), default=0) - begin
    moved = [lane._replace(start_us=lane.start_us - begin, end_us=lane.end_us - begin) for lane in lanes]
    # What people did afterwards would press the stages into a corner: it stands at the end.
    moved = [lane if lane.kind in STAGE_WORDS else _at(lane, min(max(lane.end_us, 0), wall)) for lane in moved]
    in_order = sorted(moved, key=lambda lane: (lane.end_us, lane.stage.event.event_id))
    return in_order, any(stage.reconstructed for stage in session.stages)


def _at(lane: _Lane, us: int) -> _Lane:
    return lane._replace(start_us=us, end_us=us)


def _bar(lane: _Lane, length: int) -> Bar:
    scale = 100 / length if length > 0 else 0.0
    took = lane.end_us - lane.start_us
    width = max(min(took * scale, 100.0), _LEAST_WIDTH) if lane.kind in STAGE_WORDS else None
    left = min(max(lane.start_us * scale, 0.0), 100.0 - (width or 0.0))
    payload: Any = lane.stage.payload
    return Bar(
        stage=lane.kind,
        about=_ABOUT[lane.kind](payload),
        start_us=lane.start_us,
        length_us=took,
        left=round(left, 3),
        width=None if width is None else round(width, 3),
        status=getattr(payload, "status", "ok"),
        error=getattr(payload, "error_message", None) or getattr(payload, "error_type", None) or "",
        event_id=lane.stage.event.event_id,
    )


_ABOUT: Final[dict[str, Callable[[Any], str]]] = {
    "query": lambda payload: payload.retriever_name,
    "retrieval": lambda payload: f"{len(payload.chunks):,} of {payload.total_found:,} found",
    "rerank": lambda payload: payload.model,
    "generation": lambda payload: payload.model,
    "evaluation": lambda payload: payload.evaluator,
    "escalation": lambda payload: payload.rule,
    "feedback": lambda payload: payload.rating.value.replace("_", " "),
    "summary": lambda payload: (payload.end_reason or "").replace("_", " "),
}


def _ticks(length: int) -> list[Tick]:
    """Return marks at round times: 1, 2 or 5 times a power of ten microseconds apart."""
    if length <= 0:
        return [Tick(0, 0.0)]
    step = 1
    while length / step > _TICKS:
        step = next(s for m in (1, 2, 5, 10) if (s := m * 10 ** (len(str(step)) - 1)) > step)
    return [Tick(us, round(us * 100 / length, 3)) for us in range(0, length + 1, step)]


def _rankings(session: Session) -> list[Ranking]:
    used = {chunk_id for stage in session.generations for chunk_id in stage.payload.chunk_ids_used}
    ids = [stage.event.event_id for stage in session.retrievals]
    found: list[Ranking] = []
    for number, stage in enumerate(session.retrievals):
        until = ids[number + 1] if number + 1 < len(ids) else "~"
        reranks = [r.payload for r in session.reranks if ids[number] < r.event.event_id < until]
        found.append(_ranking(stage.payload, reranks[-1] if reranks else None, used))
    return found


def _ranking(retrieval: RetrievalResultPayload, rerank: RerankPayload | None, used: set[str]) -> Ranking:
    after = {chunk.chunk_id: (rank, chunk) for rank, chunk in enumerate(rerank.chunks if rerank else (), 1)}
    rows: list[ChunkRow] = []
    for rank, chunk in enumerate(retrieval.chunks, 1):
        rows.append(_row(rank, chunk, after.pop(chunk.chunk_id, None), used))
    rows += [_row(None, chunk, (rank, chunk), used) for rank, chunk in after.values()]
    if rerank:
        # The new order first; what the rerank cut follows in the old one.
        rows.sort(key=lambda row: (row.reranked is None, row.reranked or row.rank or 0))
    return Ranking(
        retrieval=retrieval,
        rerank=rerank,
        rows=rows[:MOST_CHUNKS],
        hidden=max(0, len(rows) - MOST_CHUNKS),
        used=len({row.chunk.chunk_id for row in rows if row.used}),
        says_cited=any(row.cited is not None for row in rows),
    )


def _row(rank: int | None, chunk: RetrievedChunk, after: tuple[int, RetrievedChunk] | None, used: set[str]) -> ChunkRow:
    cited = chunk.metadata.get("cited")
    return ChunkRow(
        rank=rank,
        chunk=chunk,
        reranked=after[0] if after else None,
        reranked_score=after[1].score if after else None,
        moved=rank - after[0] if after and rank else None,
        used=chunk.chunk_id in used,
        cited=cited if isinstance(cited, bool) else None,
    )
