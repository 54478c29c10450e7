from __future__ import annotations

import pytest
from support.golden import START_NS, Recorder, generated, query, reranked, retrieved

from spanforge import _ids
from spanforge.namespaces.event import Event
from spanforge.standards.tree.session import Session, labelled
from spanforge.standards.tree.spans import spans


def changed(event: Event, **fields: object) -> Event:
    return Event(**{**event.to_dict(), **fields})


@pytest.fixture
def run() -> Recorder:
    return Recorder("s")


def test_what_this_version_does_not_know_or_cannot_read_is_counted(run: Recorder):
    good = run.add(1, generated("s"))
    newer = changed(good, event_id="0" * 26, event_type="llm.rag.newer")
    broken = changed(good, event_id="1" * 26, payload={"session_id": "s", "latency_ms": -1})
    empty = changed(good, event_id="2" * 26, payload={})
    session = Session([good, newer, broken, empty])
    assert [stage.event for stage in session.stages] == [good]
    assert session.unread == 3


def test_a_stage_ends_when_its_event_was_made_and_began_its_latency_before(run: Recorder):
    run.add(100, generated("s", latency_ms=40.0))
    (stage,) = Session(run.events).stages
    assert (stage.start_ns, stage.end_ns) == (START_NS + 60_000_000, START_NS + 100_000_000)


def test_a_time_that_cannot_be_read_is_that_of_the_id(run: Recorder):
    event = changed(run.add(100, generated("s")), timestamp="yesterday")
    (stage,) = Session([event]).stages
    assert stage.end_ns == START_NS + 100_000_000
    (stage,) = Session([changed(event, event_id="not a ulid")]).stages
    assert (stage.start_ns, stage.end_ns) == (0, 0)


def test_a_time_without_a_zone_is_that_of_utc(run: Recorder):
    event = changed(run.add(100, generated("s")), timestamp="2026-01-02T03:04:05.25")
    (stage,) = Session([event]).stages
    assert stage.end_ns == 1_767_323_045_250_000_000


def test_an_id_that_only_looks_like_one_says_no_time(run: Recorder):
    """Outside of the alphabet, beyond 128 bits, and not of ASCII."""
    event = run.add(100, generated("s"))
    for wrong in ("U" * 26, "8" + "0" * 25, "é" * 26, "0" * 25):
        (stage,) = Session([changed(event, event_id=wrong, timestamp="yesterday")]).stages
        assert (stage.start_ns, stage.end_ns) == (0, 0)


def test_facts_are_those_of_the_latest_query_before(run: Recorder):
    run.add(1, query("s", retriever_name="first"))
    run.add(2, retrieved("s"))
    run.add(3, query("s", retriever_name="second"))
    run.add(4, retrieved("s"))
    names = [span.name for span in spans(Session(run.events)) if span.name.startswith("rag.retrieve")]
    assert names == ["rag.retrieve first", "rag.retrieve second"]


def test_a_summary_repeats_the_database_of_a_query_that_is_not_there(run: Recorder):
    run.add(1, retrieved("s"))
    assert Session(run.end(5, retriever_name="docs")).facts.retriever_name == "docs"


def test_ids_that_are_none_are_replaced_by_derived_ones(run: Recorder):
    event = changed(run.add(1, reranked("s")), trace_id="0" * 32, span_id="xyz", parent_span_id="0" * 16)
    (span,) = spans(Session([event]))
    assert span.trace_id == _ids.trace_id_of("s")
    assert len(bytes.fromhex(span.span_id)) == 8
    assert span.parent_span_id == ""


def test_the_root_begins_with_its_earliest_stage_where_the_summary_does_not_say(run: Recorder):
    run.add(10, query("s", latency_ms=10.0))
    for started_at in (None, "nonsense"):
        root = spans(Session([*run.events, Recorder("s", 9).end(20, started_at=started_at)[0]]))[0]
        assert root.start_ns == START_NS


def test_a_digest_carries_its_algorithm_and_nothing_else_passes_for_one():
    assert labelled("sha256", "ab" * 32) == "sha256:" + "ab" * 32
    assert labelled("sha256", "hmac-sha256:" + "ab" * 32) == "hmac-sha256:" + "ab" * 32
    assert labelled("sha256", "what is our leave policy?") == ""


def test_a_session_named_by_its_caller_is_told_from_one_named_here():
    assert Session([Recorder("mine").add(1, query("mine"))]).named_by_caller
    own = "01KDVD6H000000000000000000"
    assert not Session([Recorder(own).add(1, query(own))]).named_by_caller
    assert not Session([]).named_by_caller
