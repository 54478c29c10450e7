"""Many sessions that end at once: at the pace of the sinks, within the time there is, counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.delivering import QUICK, emit, ledger
from support.faulty_sinks import HungSink, Scripted

from spanforge.sdk import SFRAGClient

Connect = Callable[..., SFRAGClient]
ROOM = 20


def opened(client: SFRAGClient, count: int) -> None:
    for number in range(count):
        client.trace_query("q", session_id=f"s{number}")
        if number % 10 == 9:
            client.flush(30)


def test_a_stop_ends_more_sessions_than_the_queue_has_room_for(connect: Connect) -> None:
    sink = Scripted()
    client = connect(sink, queue_events=ROOM, **QUICK)
    opened(client, 30 * ROOM)
    assert client.shutdown(60) == 0
    assert len(sink.taken) == 60 * ROOM
    assert client.get_status().active_sessions == 0


def test_the_end_of_many_is_paused_a_few_times_and_not_for_each_few(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(Scripted())
    for number in range(2_000):
        client.trace_query("q", session_id=f"s{number}")
    pauses: list[float] = []
    monkeypatch.setattr(client.cell.get(), "_breathe", pauses.append)
    assert client.shutdown(60) == 0
    assert len(pauses) < 10


def test_what_waits_for_a_sink_is_given_up_before_its_time_where_nothing_moves(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, **QUICK)
    emit(client, 1)
    assert hung.entered.wait(30)
    assert client.cell.get().dispatchers.flush(3_600, stalled_s=0.01).pending == 1
    hung.release.set()


def test_so_does_their_idle_time(connect: Connect) -> None:
    sink = Scripted()
    client = connect(sink, queue_events=ROOM, session_idle_s=1e-9, max_sessions=10_000, **QUICK)
    opened(client, 5 * ROOM)
    for _ in range(100):
        client.cell.get().end_overdue()
        client.flush(30)
    assert ledger(client).dropped == {}
    assert client.get_status().active_sessions == 0


def test_what_there_is_no_time_for_is_counted_and_has_its_summary_still(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, queue_events=ROOM, **QUICK)
    for number in range(5 * ROOM):
        client.trace_query("q", session_id=f"s{number}")
    receipt = client.shutdown(0.05)
    found = ledger(client, "hung")
    assert found.balanced
    assert found.accepted == 10 * ROOM, "each session's summary among them"
    assert receipt == found.accepted
    assert client.end_session("s99").total_queries == 1
    hung.release.set()


def test_a_stop_without_any_time_leaves_none_open(connect: Connect) -> None:
    client = connect(Scripted(), **QUICK)
    opened(client, 10)
    assert client.shutdown(0).dropped == {"shutdown": 10}
    assert client.get_status().active_sessions == 0
