"""One sink's worker: retries, back-off, isolation of what a sink refuses, the circuit, receipts, deadlines."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

import pytest
from support.delivering import QUICK, emit, ledger
from support.faulty_sinks import HungSink, Scripted
from support.moody_sinks import BoxSink, MoodySink

from spanforge.delivery import worker, writer
from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sdk import SFRAGClient
from spanforge.sinks.base import BaseSink, Receipt
from spanforge.sinks.memory import MemorySink

Connect = Callable[..., SFRAGClient]


def test_a_batch_that_fails_is_tried_again_whole(connect: Connect) -> None:
    sink = Scripted(ConnectionError(), TimeoutError())
    client = connect(sink, **QUICK)
    emit(client, 1)
    assert client.flush() == 0
    assert len(sink.writes) == 3
    assert ledger(client).delivered == 1
    assert ledger(client).last_error == "TimeoutError"
    assert client.get_status().status == "ok"


def test_what_a_partial_write_has_written_is_not_written_again(connect: Connect) -> None:
    sink = Scripted(None, SinkWriteError("DISK_FULL", delivered=2))
    gate = HungSink()
    client = connect(sink, gate, **{**QUICK, "batch_delay_s": 0.2})
    emit(client, 1)
    client.flush(0.05)
    emit(client, 5)
    gate.release.set()
    assert client.flush() == 0
    assert len(sink.taken) + 2 == 6
    assert sink.writes[2] == sink.writes[1][2:]
    assert ledger(client).delivered == 6
    assert ledger(client).last_error == "DISK_FULL"


def test_the_receiver_is_left_alone_as_long_as_it_asks(connect: Connect) -> None:
    sink = Scripted(SinkWriteError("HTTP_429", retry_after_s=0.2))
    client = connect(sink, **QUICK)
    emit(client, 1)
    assert client.flush() == 0
    assert sink.at[1] - sink.at[0] >= 0.2


@pytest.mark.parametrize("retry_after_s", [None, 0.4])
def test_a_flush_asks_a_receiver_that_is_away_less_and_less_often(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, retry_after_s: float | None
) -> None:
    monkeypatch.setattr(writer, "_PROBE_EVERY_S", 0.01)
    monkeypatch.setattr(writer, "_FIRST_REST_S", 100.0)
    sink = Scripted(*[SinkWriteError("HTTP_503", retry_after_s=retry_after_s) for _ in range(1_000)])
    client = connect(sink, delivery="thread", batch_delay_s=0.0, max_attempts=1, max_backoff_s=1.0)
    emit(client, 1)
    assert client.flush(2.0) == 1
    # The first try, eight probes at 10, 20, 40 … ms, of which every one may look at what is behind; or five at 400 ms.
    assert len(sink.writes) <= (1 + 2 * 8 if retry_after_s is None else 1 + 2 * 5)


def test_what_a_receipt_says_went_wrong_is_the_last_error(connect: Connect) -> None:
    class Partial(BaseSink):
        name = "partial"

        def write(self, events: Sequence[Event], /) -> Receipt:
            return Receipt(failed=len(events), last_error="partial_success")

    client = connect(Partial())
    emit(client, 1)
    assert (ledger(client, "partial").failed, ledger(client, "partial").last_error) == (1, "partial_success")


def test_what_a_partial_write_gave_up_is_dropped_by_its_reason(connect: Connect) -> None:
    sink = Scripted(SinkWriteError("LATER", delivered=1, dropped={"log_level": 2}))
    client = connect(sink, **{**QUICK, "batch_delay_s": 0.2})
    emit(client, 4)
    assert client.flush() == 0
    found = ledger(client)
    assert (found.delivered, found.dropped, found.lost, found.balanced) == (2, {"log_level": 2}, 0, True)
    assert sink.writes[1] == sink.writes[0][3:]


def test_a_poison_event_costs_itself_and_none_of_its_batch_mates(connect: Connect) -> None:
    sink = MoodySink()
    client = connect(sink, delivery="thread", batch_delay_s=0.1, backoff_s=0.0)
    sink.mood = "picky"
    emit(client, 3)
    client.trace_generation("s", "m", status="error")
    emit(client, 3)
    assert client.flush() == 1
    assert (ledger(client, "moody").delivered, ledger(client, "moody").failed) == (6, 1)
    assert client.get_status().status == "degraded"


def test_an_error_that_trying_again_cannot_help_is_not_tried_again(connect: Connect) -> None:
    sink = Scripted(SinkWriteError("REFUSED", retryable=False))
    client = connect(sink, **QUICK)
    emit(client, 1)
    assert client.flush() == 1
    assert len(sink.writes) == 1
    assert ledger(client).failed == 1


@pytest.mark.parametrize(
    ("error", "failed"),
    [(ConnectionError, 0), (lambda: SinkWriteError("HTTP_503"), 0), (ValueError, 4)],
    ids=["the network", "the receiver", "the sink's own code"],
)
def test_a_sink_that_is_down_rests_and_what_waits_is_delivered_when_it_is_back(
    error: Callable[[], Exception], failed: int, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_FIRST_REST_S", 0.05)
    sink = Scripted(*[error() for _ in range(8)])
    client = connect(sink, max_attempts=4, **{**QUICK, "batch_delay_s": 0.05})
    emit(client, 4)
    deadline = time.monotonic() + 5
    while len(sink.writes) < 7 and time.monotonic() < deadline:
        time.sleep(0.005)  # four tries of the batch, three events by themselves: down
    emit(client, 5)
    assert client.flush() == failed
    assert (ledger(client).failed, ledger(client).delivered) == (failed, 9 - failed)
    assert len(sink.writes[7]) == 1  # the probe
    assert sink.taken == sorted(sink.taken)


@pytest.mark.parametrize("whole_sessions", [False, True])
def test_a_receiver_that_is_away_for_long_costs_no_event_there_is_room_for(
    whole_sessions: bool, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_FIRST_REST_S", 0.001)
    sink = MoodySink(whole_sessions=whole_sessions)
    client = connect(sink, max_attempts=2, max_backoff_s=0.001, **QUICK)
    sink.mood = "down"
    for session in map(str, range(20)):
        client.trace_query("q", session_id=session)
        client.end_session(session)
        time.sleep(0.01)  # a probe for each, and one in two of them finds something to try behind it
    assert client.flush(0.1) == 40
    deadline = time.monotonic() + 30
    while not ledger(client, "moody").down and time.monotonic() < deadline:
        time.sleep(0.005)
    assert ledger(client, "moody").down
    assert client.get_status().status == "degraded"
    sink.mood = "well"
    assert client.flush() == 0
    assert len(sink.taken) == ledger(client, "moody").delivered == 40
    assert sink.taken == sorted(sink.taken)
    assert client.get_status().status == "ok"


def test_a_sink_that_refuses_all_at_the_end_is_not_waited_for(connect: Connect) -> None:
    sink = MoodySink()
    client = connect(sink, **{**QUICK, "batch_delay_s": 60.0})
    sink.mood = "down"
    emit(client, 5)
    assert client.shutdown(60.0) == 6
    assert (ledger(client, "moody").failed, ledger(client, "moody").pending) == (6, 0)


def test_a_poison_event_at_the_head_of_the_queue_does_not_keep_the_circuit_open_for_ever(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_FIRST_REST_S", 0.01)
    monkeypatch.setattr(writer, "_PROBE_EVERY_S", 0.01)
    sink = MoodySink()
    client = connect(sink, max_attempts=2, max_backoff_s=0.01, **QUICK)
    emit(client, 1)
    client.flush()
    sink.mood = "picky"
    for _ in range(3):
        client.trace_generation("s", "m", status="error")
        client.flush(0.05)
    emit(client, 1)
    client.flush()
    assert ledger(client, "moody").delivered == 2
    assert ledger(client, "moody").failed == 3


def test_a_hung_sink_holds_up_no_other_and_flush_keeps_its_deadline(connect: Connect) -> None:
    hung, healthy = HungSink(), MemorySink()
    client = connect(hung, healthy, **QUICK)
    emit(client, 10)
    assert client.flush(0.3) == 10
    assert len(healthy.events) == 10
    assert ledger(client, "hung").pending == 10
    hung.release.set()
    assert client.flush() == 0


async def test_aflush_waits_without_blocking_the_loop(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, **QUICK)
    emit(client, 1)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    assert await client.aflush(0.1) == 1
    hung.release.set()
    assert await client.aflush() == 0
    ticking.cancel()
    assert ticks > 5


def test_a_queue_that_is_full_drops_the_oldest_and_counts_them(connect: Connect) -> None:
    hung, healthy = HungSink(), MemorySink()
    client = connect(hung, healthy, queue_events=5, batch_events=1, **QUICK)
    emit(client, 1)
    while not healthy.events:
        client.flush(0.01)
    for _ in range(20):
        emit(client, 1)
        while healthy.events[-1:] and ledger(client, "memory").pending:
            client.flush(0.01)
    assert ledger(client, "memory").delivered == 21
    assert ledger(client, "hung").dropped == {"queue_full": 15}
    hung.release.set()
    assert client.flush() == 0
    assert ledger(client, "hung").delivered == 6


def test_a_session_of_more_events_than_a_batch_is_waited_for_and_written_whole(connect: Connect) -> None:
    sink = Scripted()
    sink.whole_sessions = True
    client = connect(sink, batch_events=2, **QUICK)
    with client.cell.get().dispatcher.log.lock:  # so that the worker finds all of them at once
        emit(client, 5)
    time.sleep(0.05)
    assert sink.writes == []
    client.end_session("s")
    assert client.flush() == 0
    assert [len(batch) for batch in sink.writes] == [6]


def test_receipts_settle_what_a_sink_kept(connect: Connect) -> None:
    box = BoxSink()
    client = connect(box)
    emit(client, 20)
    client.shutdown()
    assert ledger(client, "box").balanced
    assert ledger(client, "box").pending == 0
    assert ledger(client, "box").delivered == len(box.taken)


def test_two_sinks_of_one_name_have_a_ledger_each(connect: Connect) -> None:
    client = connect(MemorySink(), MemorySink(), MemorySink())
    assert list(client.get_status().sinks) == ["memory", "memory#2", "memory#3"]


def test_without_sinks_events_go_nowhere_and_nothing_waits(connect: Connect) -> None:
    client = connect()
    client.configure(sinks=())
    emit(client, 3)
    assert client.flush() == 0
    assert client.get_status().sinks == {}


def test_shutdown_gives_up_at_its_deadline_and_counts(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, batch_events=1, **QUICK)
    emit(client, 3)
    client.flush(0.05)
    receipt = client.shutdown(0.05)
    assert (receipt.pending, receipt.dropped) == (1, {"shutdown": 3})  # the summary of the open session among them
    assert client.shutdown(0.05) == 1, "what hangs still does"
    emit(client, 1)
    client.end_session("s")
    assert ledger(client, "hung").dropped == {"shutdown": 5}
    assert ledger(client, "hung").pending == 1
    hung.release.set()


def test_where_no_thread_can_be_had_delivery_is_in_line(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    sink = MemorySink()
    client = connect(sink, **QUICK)
    emit(client, 2)
    assert len(sink.events) == 2


def test_one_sink_in_two_configurations_is_never_used_by_both(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_EARLIER_S", 0.01)
    sink = MoodySink()
    sink.going.clear()
    client = connect(sink, **QUICK)
    emit(client, 1)
    application = threading.Thread(target=client.configure, kwargs={"sinks": sink, **QUICK})
    application.start()
    time.sleep(0.05)
    emit(client, 1)
    time.sleep(0.05)
    sink.going.set()
    application.join()
    assert client.flush() == 0
    assert not sink.overlaps
    assert len(sink.taken) == 2
