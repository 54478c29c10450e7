"""Figures of sessions: which samples count, and what they come to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import Recorder

from spanforge.analysis import stored_sessions
from spanforge.analysis.figures import Figure, figures, percentile
from spanforge.namespaces.event import Event
from spanforge.namespaces.feedback import FeedbackRating, FeedbackSubmittedPayload
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import (
    RAGEvaluationPayload,
    RAGSpanPayload,
    RerankPayload,
    RetrievalQueryPayload,
    RetrievalResultPayload,
    RetrievedChunk,
)

_S = "a-session"
_QUERY = RetrievalQueryPayload(session_id=_S, query_hash="ab" * 32)
_ANSWER = RAGSpanPayload(session_id=_S, chunk_ids_used=("a",), grounding_score=0.75)
_CHECKS = (
    "query_processed", "documents_retrieved", "context_ranked", "response_generated", "grounding_verified",
    "sources_attributed",
)  # fmt: skip


def _found(*scores: float | None) -> RetrievalResultPayload:
    chunks = (RetrievedChunk(chunk_id=name, score=score) for name, score in zip("abcdef", scores, strict=False))
    return RetrievalResultPayload(session_id=_S, query_hash="", chunks=tuple(chunks))


def _rated(rating: FeedbackRating) -> FeedbackSubmittedPayload:
    return FeedbackSubmittedPayload(
        feedback_id="f", session_id=_S, trace_id="", rating=rating, value=rating.numeric_value()
    )


def _run(*stages: Payload, apart_ms: float = 1_000) -> list[Event]:
    recorder = Recorder(_S)
    return [recorder.add(number * apart_ms, stage) for number, stage in enumerate(stages)]


def _of(events: list[Event]) -> dict[str, Figure]:
    return figures(stored_sessions(events))


def test_a_whole_run_passes_every_check() -> None:
    found = _of(_run(_QUERY, _found(0.9, 0.4), _ANSWER, RAGEvaluationPayload(session_id=_S, context_relevance=0.75)))
    assert {name: found[name] for name in _CHECKS} == dict.fromkeys(_CHECKS, Figure(1.0, 1))
    assert found["grounding"] == Figure(0.75, 1)
    assert found["latency_s"] == Figure(2.0, 1)
    assert found["citation_coverage"] == Figure(1.0, 1)
    assert found["context_relevance"] == Figure(4.0, 1)
    assert found["helpful_rate"] == found["answer_quality"] == Figure(None, 0)


@pytest.mark.parametrize(
    ("failing", "stages"),
    [
        ("query_processed", (_found(0.9), _ANSWER)),
        ("documents_retrieved", (_QUERY, _found(), RAGSpanPayload(session_id=_S, grounding_score=0.5))),
        ("context_ranked", (_QUERY, _found(0.4, 0.9), _ANSWER)),
        ("context_ranked", (_QUERY, _found(0.9), RerankPayload(session_id=_S, model="m", status="error"), _ANSWER)),
        ("response_generated", (_QUERY, _found(0.9), replace(_ANSWER, status="timeout"))),
        ("grounding_verified", (_QUERY, _found(0.9), replace(_ANSWER, grounding_score=None))),
        ("sources_attributed", (_QUERY, _found(0.9), replace(_ANSWER, chunk_ids_used=("a", "elsewhere")))),
    ],
)
def test_what_is_missing_fails_one_check_alone(failing: str, stages: tuple[Payload, ...]) -> None:
    found = _of(_run(*stages))
    assert {name for name in _CHECKS if found[name].value == 0.0} == {failing}


def test_what_events_do_not_carry_is_no_sample() -> None:
    unscored = _of(_run(_QUERY, _found(None, None), replace(_ANSWER, chunk_ids_used=())))
    assert unscored["context_ranked"].samples == unscored["sources_attributed"].samples == 0
    assert unscored["citation_coverage"] == Figure(0.0, 1)
    claimless = _of(_run(_QUERY, replace(_ANSWER, grounding_score=None), RAGEvaluationPayload(session_id=_S)))
    assert claimless["grounding_verified"] == Figure(1.0, 1)


def test_ratings_without_a_run_count_as_ratings_alone() -> None:
    ratings = (FeedbackRating.STAR_4, FeedbackRating.THUMBS_DOWN, FeedbackRating.LIKERT_3, FeedbackRating.FREE_TEXT)
    found = _of(_run(*(_rated(rating) for rating in ratings)))
    assert found["helpful_rate"] == Figure(1 / 3, 3)
    assert found["answer_quality"] == Figure(8 / 3, 3)
    assert all(found[name].samples == 0 for name in _CHECKS)


def test_latency_runs_from_each_query_to_the_next_generation() -> None:
    found = _of(_run(_QUERY, _QUERY, _ANSWER, _ANSWER, _QUERY, replace(_ANSWER, status="error"), _QUERY))
    assert found["latency_s"] == Figure(2.0, 3)


def test_time_that_runs_backwards_is_left_out_and_counted() -> None:
    query, answer, again, last = _run(_QUERY, _ANSWER, _QUERY, _ANSWER)
    early = replace(answer, timestamp="2020-01-01T00:00:00.000000Z")
    assert _of([query, early, again, last])["latency_s"] == Figure(1.0, 1, 1)


def test_order_and_repeats_change_nothing() -> None:
    events = _run(_QUERY, _found(0.9, 0.4), _ANSWER, _rated(FeedbackRating.STAR_5))
    assert _of([*reversed(events), *events]) == _of(events)


def test_a_session_of_which_only_the_summary_is_left_counts() -> None:
    recorder = Recorder(_S)
    for number, stage in enumerate((_QUERY, _found(0.9), _ANSWER)):
        recorder.add(number, stage)
    found = _of(recorder.end(10)[-1:])
    assert found["grounding"] == Figure(0.75, 1)
    assert found["response_generated"] == found["documents_retrieved"] == Figure(1.0, 1)
    assert found["latency_s"] == found["sources_attributed"] == Figure(None, 0)


@given(values=st.lists(st.integers(0, 100), min_size=1), share=st.floats(0.01, 1))
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(values: list[int], share: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    assert found == ordered[0] or sum(value < found for value in ordered) < share * len(ordered)
