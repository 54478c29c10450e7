"""When stages ran: as they were reported, or worked out where they were reported after the fact."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.golden import START_NS, Recorder, evaluated, generated, query, reranked, retrieved

from spanforge.standards.transparency import transparency
from spanforge.standards.tree.layout import PIPELINE, union_ns
from spanforge.standards.tree.session import Known, Session
from spanforge.standards.tree.spans import spans


def run(*reports: tuple[float, object]) -> Session:
    recorder = Recorder("s")
    for at_ms, payload in reports:
        recorder.add(at_ms, payload)
    return Session(recorder.events)


def moments(session: Session) -> list[tuple[float, float]]:
    return [((s.start_ns - START_NS) / 1e6, (s.end_ns - START_NS) / 1e6) for s in session.stages]


def test_stages_reported_as_they_ended_stay_where_they_are():
    session = run(
        (12.5, query("s", latency_ms=12.5)),
        (45, retrieved("s", latency_ms=32.0)),
        (70, reranked("s", latency_ms=24.0)),
        (930, generated("s", latency_ms=859.0)),
        (1040, evaluated("s", latency_ms=100.0)),
    )
    assert not any(stage.reconstructed for stage in session.stages)
    assert moments(session)[1] == (13.0, 45.0)


def test_a_run_reported_in_one_breath_is_laid_end_to_end_up_to_its_report():
    session = run(
        (0, query("s", latency_ms=10.0)),
        (0.1, retrieved("s", latency_ms=30.0)),
        (0.2, retrieved("s", latency_ms=20.0)),
        (0.3, generated("s", latency_ms=800.0)),
        (0.4, evaluated("s", latency_ms=100.0)),
    )
    assert all(stage.reconstructed for stage in session.stages)
    assert [round(start, 1) for start, _ in moments(session)] == [-959.6, -949.6, -919.6, -899.6, -99.6]
    assert [round(end, 1) for _, end in moments(session)] == [-949.6, -919.6, -899.6, -99.6, 0.4]


def test_within_a_breath_the_order_is_that_of_a_pipeline_and_a_query_begins_it_anew():
    session = run(
        (0, query("s", latency_ms=10.0)),
        (0.1, generated("s", latency_ms=80.0)),
        (0.2, retrieved("s", latency_ms=30.0)),
        (0.3, query("s", latency_ms=5.0)),
        (0.4, generated("s", latency_ms=50.0)),
        (0.5, retrieved("s", latency_ms=20.0)),
    )
    ran = sorted(session.stages, key=lambda stage: stage.start_ns)
    assert [PIPELINE.index(type(stage.payload)) for stage in ran] == [0, 1, 3, 0, 1, 3]
    assert all(before.end_ns == after.start_ns for before, after in pairwise(ran))


def test_what_ran_side_by_side_stays_so():
    """Two retrievals in threads, a query before them, and an answer that took no time to speak of."""
    session = run(
        (40, query("s", latency_ms=40.0)),
        (90, retrieved("s", latency_ms=50.0)),
        (90.3, retrieved("s", latency_ms=50.0)),
        (91, generated("s", latency_ms=0.5)),
    )
    assert not any(stage.reconstructed for stage in session.stages)
    assert round(union_ns((*session.queries, *session.retrievals)) / 1e6, 1) == 90.3


def test_an_answer_begun_in_another_branch_before_the_last_retrieval_stays_where_it_was():
    session = run(
        (5, query("s", latency_ms=5.0)),
        (50, retrieved("s", latency_ms=40.0)),
        (60, retrieved("s", latency_ms=50.0)),
        (850, generated("s", latency_ms=800.0)),
    )
    assert not any(stage.reconstructed for stage in session.stages)


def test_stages_reported_late_do_not_move_what_was_reported_in_time():
    session = run(
        (12, query("s", latency_ms=12.0)),
        (900, retrieved("s", latency_ms=30.0)),
        (900.1, generated("s", latency_ms=800.0)),
    )
    at = [(round(start, 1), round(end, 1)) for start, end in moments(session)]
    assert at == [(0.0, 12.0), (70.1, 100.1), (100.1, 900.1)]
    assert [stage.reconstructed for stage in session.stages] == [False, True, True]


def test_a_query_that_the_late_report_contradicts_moves_along():
    session = run(
        (500, query("s", latency_ms=12.0)),
        (900, retrieved("s", latency_ms=30.0)),
        (900.1, generated("s", latency_ms=800.0)),
    )
    assert [round(end, 1) for _, end in moments(session)] == [70.1, 100.1, 900.1]


def test_a_stage_of_no_known_length_is_at_the_moment_of_its_report():
    session = run((1, query("s", latency_ms=None)), (2, generated("s", latency_ms=None)))
    assert moments(session) == [(1.0, 1.0), (2.0, 2.0)]


def test_the_spans_of_a_breath_say_so_and_lie_inside_their_root():
    recorder = Recorder("s")
    for number, payload in enumerate((query("s"), retrieved("s"), generated("s"))):
        recorder.add(number / 10, payload)
    root, *stages = spans(Session(recorder.end(1)))
    assert root.start_ns == min(span.start_ns for span in stages)
    assert root.end_ns >= max(span.end_ns for span in stages)


def test_a_root_that_comes_apart_from_its_stages_covers_them_all_the_same():
    recorder = Recorder("s")
    recorder.add(0, query("s", latency_ms=40.0))
    known = Session(recorder.events).known
    [root] = spans(Session(recorder.end(10)[1:], known))
    assert root.start_ns == START_NS - 40_000_000
    [root] = spans(Session(recorder.events[1:], Known()))
    assert root.start_ns == START_NS


@pytest.mark.parametrize(
    ("reports", "wall"),
    [
        ([(10, query("s", latency_ms=10.0)), (60, retrieved("s", latency_ms=50.0))], 60),
        ([(50, retrieved("s", latency_ms=50.0)), (60, retrieved("s", latency_ms=50.0))], 60),
        ([(10, query("s", latency_ms=None)), (60, retrieved("s", latency_ms=50.0))], 50),
        ([(0, query("s", latency_ms=10.0)), (0.1, retrieved("s", latency_ms=50.0))], 60),
    ],
    ids=["one after the other", "side by side", "a query of unknown length", "in one breath"],
)
def test_evidence_gives_the_time_by_the_clock(reports: list[tuple[float, object]], wall: int):
    assert transparency(run(*reports))["retrieval_time_ms"] == wall
