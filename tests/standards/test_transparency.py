from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from support.golden import CHUNKS, VARIANTS, Recorder, chunk, generated, query, reranked, retrieved
from support.sessions import sessions

from spanforge.namespaces.event import Event
from spanforge.standards.transparency import TransparencyError, problems, transparency
from spanforge.standards.tree.session import Session

SCHEMA = Draft202012Validator(json.loads((Path(__file__).parent / "transparency.schema.json").read_text()))

SLOW_TO_DRAW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def run(*stages: object) -> Session:
    recorder = Recorder("s")
    for number, stage in enumerate(stages):
        recorder.add(100.0 * number, stage)
    return Session(recorder.events)


def test_a_reranked_session_reads_as_the_text_of_the_extension_says():
    assert transparency(Session(VARIANTS["rerank"]())) == {
        "retrieval_strategy": "single_pass",
        "chunks_retrieved": 3,
        "chunks_evaluated": 2,
        "similarity_scores": [
            {"chunk_id": "chunk-1", "score": 0.96, "source_item_id": "docs/handbook-1.md"},
            {"chunk_id": "chunk-2", "score": 0.91, "source_item_id": "docs/handbook-2.md"},
            {"chunk_id": "chunk-3", "score": 0.72, "source_item_id": "docs/handbook-3.md"},
        ],
        "ranking_method": "cosine",
        "retrieval_time_ms": 63,
        "reranking_applied": True,
        "reranking_model": "cross-encoder/ms-marco",
    }


def test_without_rerank_there_is_no_model_and_the_budget_is_what_the_trace_says():
    record = transparency(Session(VARIANTS["timeout"]()))
    assert record["reranking_applied"] is False
    assert "reranking_model" not in record
    assert record["retrieval_budget_exhausted"] is True
    assert record["ceiling_reached"] == "time budget of 5000 ms"


def test_a_rerank_that_failed_was_not_applied():
    record = transparency(run(retrieved("s"), reranked("s", status="error")))
    assert record["reranking_applied"] is False
    assert "reranking_model" not in record


def test_a_chunk_that_came_twice_counts_once_with_its_best_score():
    record = transparency(run(retrieved("s"), retrieved("s", chunks=(chunk(3, 0.99),))))
    assert record["chunks_retrieved"] == 3
    assert [entry["chunk_id"] for entry in record["similarity_scores"]] == ["chunk-3", "chunk-1", "chunk-2"]


def test_the_standard_way_refuses_what_it_would_have_to_guess():
    for stages, reason in [
        ((query("s"),), "no retrieval"),
        ((retrieved("s", retrieval_strategy=None),), "pass retrieval_strategy="),
        ((retrieved("s", ranking_method=None),), "pass ranking_method="),
        ((retrieved("s"), retrieved("s", retrieval_strategy=None)), "pass retrieval_strategy="),
        ((retrieved("s"), retrieved("s", retrieval_strategy="iterative")), "mixed retrieval strategy"),
        ((retrieved("s"), retrieved("s", ranking_method="rrf")), "mixed ranking method"),
        ((retrieved("s", chunks=CHUNKS[:1]), generated("s")), "the trace lacks a retrieval"),
        ((retrieved("s"), reranked("s"), reranked("s", model="other")), "more than one model"),
    ]:
        with pytest.raises(TransparencyError, match=reason):
            transparency(run(*stages))


def test_a_retrieval_that_failed_need_not_say_how_it_would_have_ranked():
    silent = retrieved("s", retrieval_strategy=None, ranking_method=None, status="error", chunks=())
    assert transparency(run(silent, retrieved("s")))["ranking_method"] == "cosine"


def test_a_retrieval_that_does_not_say_how_long_it_took_ran_since_its_query():
    record = transparency(run(query("s"), retrieved("s", latency_ms=None), reranked("s", latency_ms=None)))
    assert record["retrieval_time_ms"] == 112  # 12.5 of the query, 100 until the retrieval was there
    twice = run(query("s", latency_ms=None), retrieved("s", latency_ms=None), retrieved("s", latency_ms=None))
    assert transparency(twice)["retrieval_time_ms"] == 200


def test_where_neither_retrieval_nor_clock_say_how_long_it_took_there_is_no_record():
    breath = Recorder("s")
    breath.add(0.1, query("s"))
    breath.add(0.4, retrieved("s", latency_ms=None))
    for session in (Session(breath.events), run(retrieved("s", latency_ms=None))):
        with pytest.raises(TransparencyError, match="pass latency_ms="):
            transparency(session)


def test_a_source_outside_the_bundle_refuses():
    session = run(retrieved("s"))
    with pytest.raises(TransparencyError, match="not among the bundle's context items"):
        transparency(session, items={"docs/handbook-1.md"})


def test_problems_are_those_a_schema_cannot_see():
    record = transparency(run(retrieved("s")))
    assert problems(record) == []
    bad = {
        **record,
        "chunks_evaluated": 9,
        "similarity_scores": [
            {"chunk_id": "a", "score": 0.1, "source_item_id": "x"},
            {"chunk_id": "b", "score": 1.5, "source_item_id": "x"},
        ],
    }
    assert problems(bad, items={"y"}) == [
        "more chunks were evaluated than retrieved",
        "a score is outside [0, 1]",
        "the scores do not descend",
        "a chunk comes from a source that is not among the bundle's context items",
    ]


@SLOW_TO_DRAW
@given(sessions(says=True))
def test_no_session_exports_an_invalid_record(events: list[Event]):
    try:
        record = transparency(Session(events))
    except TransparencyError:
        return
    assert list(SCHEMA.iter_errors(json.loads(json.dumps(record)))) == []
    assert problems(record) == []


@SLOW_TO_DRAW
@given(sessions())
def test_a_session_that_does_not_say_enough_refuses_with_a_sentence(events: list[Event]):
    said = outcome(Session(events))
    if isinstance(said, str):
        assert said.startswith("no transparency record: ")
    else:
        assert list(SCHEMA.iter_errors(said)) == []


def outcome(session: Session) -> dict | str:
    try:
        return transparency(session)
    except TransparencyError as error:
        return str(error)
