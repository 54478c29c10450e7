"""Figures that sessions are held to: for each, what samples a session gives of it, and what many samples come to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from spanforge import _clock
from spanforge.namespaces.event import Event
from spanforge.namespaces.feedback import FeedbackRating
from spanforge.namespaces.stages import EVALUATED, FEEDBACK, GENERATED, QUERY, RERANKED, RETRIEVED
from spanforge.sdk import StoredSession

__all__ = ["FIGURES", "PERCENTILES", "Figure", "figures", "percentile"]

T = TypeVar("T")

_FAILED: Final = ("error", "timeout")
PERCENTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""The percentiles that times are told by, and the share of sessions that each is not exceeded in."""
_Samples: TypeAlias = Iterator[float | None]
_Scores: TypeAlias = Sequence[float]


class Figure(NamedTuple):
    """What samples came to.

    Attributes:
        value: The figure; None where there is no sample.
        samples: How many there are.
        left_out: How many could not be used, because a clock went backwards, a time cannot be read or a
            cost is not known.
    """

    value: float | None
    samples: int
    left_out: int = 0


def percentile(ordered: Sequence[T], share: float) -> T:
    """Return the nearest-rank percentile: the smallest value that at least `share` of all do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def figures(sessions: Iterable[StoredSession]) -> dict[str, Figure]:
    """Return every figure of some sessions, by name."""
    found: dict[str, list[float | None]] = {name: [] for name in FIGURES}
    for session in sessions:
        for name, (samples, _) in FIGURES.items():
            found[name] += samples(session)
    return {name: _come_to(FIGURES[name][1], samples) for name, samples in found.items()}


def _come_to(statistic: Callable[[_Scores], float], samples: list[float | None]) -> Figure:
    usable = [sample for sample in samples if sample is not None]
    return Figure(statistic(usable) if usable else None, len(usable), len(samples) - len(usable))


def _mean(samples: _Scores) -> float:
    return math.fsum(samples) / len(samples)


def _slow(samples: _Scores) -> float:
    return percentile(sorted(samples), PERCENTILES["p95"])


def _payloads(session: StoredSession, event_type: str) -> list[Mapping[str, Any]]:
    return [event.payload for event in session.events if event.event_type == event_type]


def _answers(session: StoredSession) -> list[Mapping[str, Any]]:
    """Return the generations that came to an answer."""
    return [one for one in _payloads(session, GENERATED) if one.get("status", "ok") == "ok"]


def _answered(session: StoredSession) -> bool:
    if session.fold.from_stages:
        return bool(_answers(session))
    return session.summary.generation_count > 0 and session.summary.status != "error"


def _of_five(score: float) -> float:
    """Put a score in [0, 1] on the scale that ratings have."""
    return 1 + 4 * score


def _grounding(session: StoredSession) -> _Samples:
    if (score := session.summary.avg_grounding_score) is not None:
        yield score


def _cost(session: StoredSession) -> _Samples:
    # That nobody knows what it cost is counted, where there was something to pay.
    if session.summary.generation_count:
        yield session.summary.total_cost_usd


def _latency(session: StoredSession) -> _Samples:
    asked: list[int | None] = []
    for event in session.events:
        if event.event_type == QUERY:
            asked.append(_moment_us(event))
        elif event.event_type == GENERATED:
            yield from (_took_s(moment, _moment_us(event)) for moment in asked)
            asked.clear()


def _moment_us(event: Event) -> int | None:
    try:
        return _clock.parse_timestamp(event.timestamp) // 1000
    except (ValueError, OverflowError):
        return None


def _took_s(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None or end < start else (end - start) / 1_000_000


def _helpful(session: StoredSession) -> _Samples:
    for one in _payloads(session, FEEDBACK):
        if (helpful := FeedbackRating(one["rating"]).helpful) is not None:
            yield helpful


def _cited(session: StoredSession) -> _Samples:
    yield from (bool(answer.get("chunk_ids_used")) for answer in _answers(session))


def _asked(session: StoredSession) -> _Samples:
    # Ratings alone are no run.
    if session.fold.from_stages or session.ended:
        yield session.summary.total_queries > 0


def _found(session: StoredSession) -> _Samples:
    if session.summary.total_queries:
        yield session.summary.total_chunks_retrieved > 0


def _ranked(session: StoredSession) -> _Samples:
    if reranks := _payloads(session, RERANKED):
        yield all(one.get("status", "ok") not in _FAILED for one in reranks)
        return
    lists = [[chunk.get("score") for chunk in one.get("chunks", ())] for one in _payloads(session, RETRIEVED)]
    scored = [[score for score in scores if score is not None] for scores in lists]
    if any(scored):
        yield all(first >= second for scores in scored for first, second in pairwise(scores))


def _generated(session: StoredSession) -> _Samples:
    if session.summary.total_queries:
        yield _answered(session)


def _verified(session: StoredSession) -> _Samples:
    # An answer that claims nothing has no score, but was looked at.
    if _answered(session):
        yield session.summary.grounding_count > 0 or session.summary.evaluation_count > 0


def _attributed(session: StoredSession) -> _Samples:
    retrieved = {
        chunk["chunk_id"]
        for event_type in (RETRIEVED, RERANKED)
        for one in _payloads(session, event_type)
        for chunk in one.get("chunks", ())
    }
    used = {name for answer in _answers(session) for name in answer.get("chunk_ids_used") or ()}
    if used and session.summary.retrieval_count:
        yield used <= retrieved


def _rated(session: StoredSession) -> _Samples:
    yield from (_of_five(one["value"]) for one in _payloads(session, FEEDBACK) if one.get("value") is not None)


def _relevant(session: StoredSession) -> _Samples:
    scores = (one.get("context_relevance") for one in _payloads(session, EVALUATED))
    yield from (_of_five(score) for score in scores if score is not None)


FIGURES: Final[Mapping[str, tuple[Callable[[StoredSession], _Samples], Callable[[_Scores], float]]]] = {
    "grounding": (_grounding, _mean),
    "latency_s": (_latency, _slow),
    "cost_usd": (_cost, _mean),
    "helpful_rate": (_helpful, _mean),
    "citation_coverage": (_cited, _mean),
    "query_processed": (_asked, _mean),
    "documents_retrieved": (_found, _mean),
    "context_ranked": (_ranked, _mean),
    "response_generated": (_generated, _mean),
    "grounding_verified": (_verified, _mean),
    "sources_attributed": (_attributed, _mean),
    "answer_quality": (_rated, _mean),
    "context_relevance": (_relevant, _mean),
}
"""Where the samples of each figure come from, and what is made of them."""
