"""The fold: however the events of a session come, they make one summary, and it is the one the live table gives."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.live import STAGES, STEPS, Live, folded
from support.sessions import sessions, stores

from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import SFRAGClient
from spanforge.sessions.fold import SessionAggregate, Totals
from spanforge.sessions.stored import StoredTotals
from spanforge.sinks.memory import MemorySink

# -- any order, any split, any repetition ---------------------------------------------------------------------------


@given(sessions(), st.data())
def test_order_split_and_repetition_do_not_matter(events: list[Event], data: st.DataObject) -> None:
    whole = SessionAggregate.of(*events).summary("s")
    again = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events)))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(again)), max_size=4)))
    parts = [again[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(again)], strict=True)]
    merged = reduce(SessionAggregate.merge, (SessionAggregate.of(*part) for part in parts), SessionAggregate.empty())
    assert merged.summary("s") == whole
    assert merged == SessionAggregate.of(*events)
    assert hash(merged) == hash(SessionAggregate.of(*events))
    assert len(merged) == len(events)


@given(sessions(), sessions(), sessions())
def test_merging_is_a_commutative_monoid(one: list[Event], two: list[Event], three: list[Event]) -> None:
    # Ids of different sessions may clash here as they may in no file: then the event is the same one.
    a, b, c = SessionAggregate.of(*one), SessionAggregate.of(*one[1:], *two[:1]), SessionAggregate.of(*three[:1], *one)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert len(a.merge(b)) == len(b.merge(a))
    assert a.merge(SessionAggregate.empty()) == a == SessionAggregate.empty().merge(a)
    assert a.merge(a) == a


@given(sessions())
def test_events_read_again_fold_to_the_same_digits(events: list[Event]) -> None:
    read = [Event.decode(event.encode()) for event in events]
    assert SessionAggregate.of(*read).summary("s") == SessionAggregate.of(*events).summary("s")


# -- parts that are kept and merged, and the cap -----------------------------------------------------------------


@given(events=stores(), cap=st.integers(1, 4), data=st.data())
def test_parts_are_merged_dumped_and_loaded_in_any_way(events: list[Event], cap: int, data: st.DataObject) -> None:
    own = list({event.event_id: event for event in events}.values())
    whole = StoredTotals(cap)
    for event in own:
        whole.add(event)
    parts = [StoredTotals(cap) for _ in range(3)]
    for event in data.draw(st.permutations(own)):
        data.draw(st.sampled_from(parts)).add(event)
    kept = [StoredTotals.load(json.loads(json.dumps(part.dump())), cap) for part in data.draw(st.permutations(parts))]
    merged = reduce(_merged, kept)
    assert merged.summary("s") == whole.summary("s")
    assert merged.dump() == whole.dump()


def test_of_more_firsts_than_are_remembered_nobody_says_what_a_rerank_changed() -> None:
    fold = StoredTotals()
    for number in range(100):
        assert fold.reordered is (None if number == 0 else True)
        for kind, name in (("retrieved", f"a{number:03}"), ("reranked", f"b{number:03}")):
            payload = {"chunks": [{"chunk_id": name}]}
            fold.add(Event(event_id=name, event_type=f"llm.rag.{kind}", timestamp="", source="t@1", payload=payload))
    assert fold.reordered is None


def _merged(one: StoredTotals, other: StoredTotals) -> StoredTotals:
    one.merge(other)
    return one


@given(st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=12), st.integers(1, 6), st.randoms())
def test_above_the_cap_the_smallest_ids_are_kept_whatever_the_order(
    results: list[list[int]], cap: int, rng: Any
) -> None:
    ids = {f"c{number:02}" for result in results for number in result}
    for _ in range(2):
        totals = Totals(cap)
        for result in results:
            totals.add("llm.rag.retrieved", {"chunks": [{"chunk_id": f"c{number:02}"} for number in result]}, 0)
        summary = totals.summary("s")
        assert summary["unique_chunk_ids"] == tuple(sorted(ids)[:cap])
        assert summary["chunk_ids_truncated"] == (len(ids) > cap)
        rng.shuffle(results)


# -- the live table -------------------------------------------------------------------------------------------------


@given(STEPS)
def test_the_live_table_is_the_fold_of_what_the_sink_received(steps: list[tuple[int, Any]]) -> None:
    live = Live()
    for number, (call, values) in steps:
        live.step(f"s{number}", call, values)
        for name in live.open:
            snapshot = live.client.get_session(name)
            assert snapshot is not None
            assert folded(snapshot) == folded(received(live.sink, snapshot.session_id))
    for name in sorted(live.open):
        live.end(name)
    for summary in live.last.values():
        assert folded(summary) == folded(received(live.sink, summary.session_id))
        assert live.sink.of_type("llm.rag.session")
    assert live.client.get_status().orphans == 0


def received(sink: MemorySink, session_id: str) -> RAGSessionPayload:
    """Fold what a sink received of a session, as any reader of its bytes would."""
    events = [Event.decode(event.encode()) for event in sink.events if event.session_id == session_id]
    return SessionAggregate.of(*events).summary(session_id)


@given(st.lists(STAGES, max_size=10), st.data())
def test_two_processes_of_one_session_fold_to_what_one_would_have_seen(stages: list[Any], data: st.DataObject) -> None:
    alone, here, there = Live(), Live(), Live()
    for side in (alone, here):
        side.client.trace_query("q", session_id="s", retriever_name="first")
        side.open.add("s")
    there.step("s", "join", {})
    for call, values in stages:
        # The first named retriever is decided by event id, which clocks of two processes do not order: name one.
        given_values = {**values, "retriever_name": "first"} if call == "trace_query" else values
        alone.step("s", call, given_values)
        data.draw(st.sampled_from([here, there])).step("s", call, given_values)
    for side in (alone, here, there):
        side.end("s")
    assert there.last["s"].partial_view
    assert not here.last["s"].partial_view
    both = SessionAggregate.of(*here.sink.events).merge(SessionAggregate.of(*there.sink.events))
    assert folded(both.summary("s")) == folded(alone.last["s"])


def test_late_stages_are_in_the_fold_and_not_in_a_summary_that_was_sent(client: SFRAGClient, sink: MemorySink) -> None:
    session_id = client.trace_query("q")
    summary = client.end_session(session_id)
    client.trace_evaluation(session_id, faithfulness=0.5)
    assert client.get_status().orphans == 1
    assert summary.evaluation_count == 0
    assert received(sink, session_id).evaluation_count == 1
