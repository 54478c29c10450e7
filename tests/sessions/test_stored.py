"""Sessions rebuilt from what was stored."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import Recorder, generated

from spanforge.analysis import StoredSession, is_sound, stored_sessions
from spanforge.namespaces.payload import LARGEST
from spanforge.reader.records import record_of
from spanforge.sdk import SFRAGClient, sf_rag
from spanforge.sdk._coerce import count
from spanforge.sinks.memory import MemorySink
from spanforge.testing import capture


def _events():
    with capture() as captured:
        for number in range(3):
            session_id = sf_rag.trace_query("q", retriever_name=f"r{number}", latency_ms=0.1)
            sf_rag.trace_retrieval(session_id, [{"id": "a", "score": 0.5}], latency_ms=0.2)
            sf_rag.trace_generation(session_id, "m", grounding_score=0.1 * number, latency_ms=0.3, chunk_ids_used=["a"])
            sf_rag.end_session(session_id)
        return captured.all


@given(st.data())
def test_order_and_repeats_do_not_matter(data):
    events = _events()
    shuffled = data.draw(st.permutations(events + events[::2]))
    for session in stored_sessions(shuffled):
        [told] = [event.payload for event in session.events if event.event_type == "llm.rag.session"]
        assert session.summary.to_dict() == {**told, "unique_chunk_ids": list(told["unique_chunk_ids"])}
        assert session.ended
        assert [event.event_type.rpartition(".")[2] for event in session.events] == [
            "query",
            "retrieved",
            "generated",
            "session",
        ]


def test_a_session_without_summary_is_folded_from_its_stages():
    events = [event for event in _events() if event.event_type != "llm.rag.session"]
    first = stored_sessions(events)[0]
    assert not first.ended
    assert first.summary.total_queries == 1
    assert first.summary.duration_ms is None
    assert first.started_at == first.events[0].timestamp


def test_a_summary_counts_where_the_stages_are_absent():
    events = [event for event in _events() if event.event_type == "llm.rag.session"]
    assert all(session.summary.total_queries == 1 for session in stored_sessions(events))


def test_sessions_come_in_the_order_they_began():
    sessions = stored_sessions(reversed(_events()))
    assert [session.summary.retriever_name for session in sessions] == ["r0", "r1", "r2"]


def test_an_event_of_another_kind_belongs_to_its_session():
    with capture() as captured:
        session_id = sf_rag.trace_query("q")
        sf_rag.escalate(session_id, "slow", trigger="latency")
        summary = sf_rag.end_session(session_id)
        session = StoredSession(session_id, captured.all)
    assert session.summary.to_dict() == summary.to_dict()


@pytest.mark.parametrize(
    "changes",
    [
        {"payload": {"session_id": "s", "model": "m", "prompt_tokens": LARGEST + 1}},
        {"payload": {"session_id": "s", "model": "m", "span_name": "half a character: \ud83d"}},
        {"event_type": "llm.rag.newer", "payload": {"text": "\udc00"}},
        {"tags": {"env": "\ud800"}},
    ],
    ids=["count", "text", "type of a newer version", "tag"],
)
def test_what_bulk_readers_leave_out_is_left_out_by_all(changes: dict[str, Any]):
    event = replace(Recorder("s").add(1, generated("s")), **changes)
    sound = replace(event, event_type="llm.rag.newer", payload={"text": "\U0001f600"}, tags={})
    damaged, of_stored = Counter[str](), Counter[str]()
    assert stored_sessions([event], of_stored) == []
    assert record_of(event, damaged) is None
    assert damaged == of_stored == {"payload": 1}
    assert is_sound(sound)
    assert record_of(sound, damaged) is not None


def test_a_summary_of_the_largest_counts_is_sound(client: SFRAGClient, sink: MemorySink) -> None:
    session_id = client.trace_query("q")
    for _ in range(3):
        client.trace_generation(session_id, "m", prompt_tokens=LARGEST, output_tokens=LARGEST, latency_ms=1e14)
    told = client.end_session(session_id)
    assert (told.total_input_tokens, told.total_output_tokens) == (3 * LARGEST, 3 * LARGEST)
    assert all(map(is_sound, sink.events))
    [only] = stored_sessions(sink.events[-1:])
    assert only.summary.total_input_tokens == 3 * LARGEST


def test_the_largest_count_is_taken_from_callers_and_by_readers():
    event = Recorder("s").add(1, generated("s", prompt_tokens=LARGEST))
    assert is_sound(event)
    assert count(LARGEST, "tokens", print) == LARGEST
    noted: list[str] = []
    assert count(LARGEST + 1, "tokens", noted.append) is None
    assert noted == ["tokens"]
