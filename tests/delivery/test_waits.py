"""Waits that are very long, are cut short, or would be by a clock that stands still."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest
from support.delivering import QUICK, emit, ledger
from support.faulty_sinks import HungSink, Scripted
from support.moody_sinks import MoodySink

from spanforge.delivery import writer
from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sdk import SFRAGClient
from spanforge.sinks.memory import MemorySink

Connect = Callable[..., SFRAGClient]


@pytest.mark.parametrize("seconds", [1e10, 1e300, math.inf, math.nan, 10**400, None, "long"])
def test_a_wait_longer_than_any_clock_ends_with_the_work(seconds: Any, connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, **QUICK)
    emit(client, 1)
    threading.Timer(0.05, hung.release.set).start()
    assert client.flush(seconds) == 0
    assert ledger(client, "hung").delivered == 1
    emit(client, 1)
    assert client.shutdown(seconds) == 0
    assert ledger(client, "hung").delivered == 3, "the summary of the open session is among them"
    assert set(client.get_status().replaced) <= {"timeout"}


def test_a_wait_of_no_time_says_what_is_left(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, **QUICK)
    emit(client, 2)
    assert client.flush(-1) == client.flush(0) == 2
    hung.release.set()


def test_waits_keep_their_deadline_while_another_thread_hangs_in_a_sink_in_line(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, delivery="sync")
    other = threading.Thread(target=emit, args=(client, 1))
    other.start()
    assert hung.entered.wait(30)
    assert client.flush(0.1) == 1
    receipt = client.shutdown(0.1)
    assert (receipt.pending, receipt.dropped) == (1, {"shutdown": 1}), "the event that is being written, the summary"
    assert not hung.release.is_set()
    assert not hung.closed
    hung.release.set()
    other.join()
    assert hung.closed, "by the thread that was inside it"
    seen = ledger(client, "hung")
    assert (seen.delivered, seen.dropped, seen.pending) == (1, {"shutdown": 1}, 0)


class Interrupt(KeyboardInterrupt):
    """The user's, and no other."""


@pytest.fixture
def _interrupted_soon() -> Generator[None]:
    """Interrupt the main thread after a moment, as a user does."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("the platform has no timer that interrupts")

    def interrupt(*_args: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("_interrupted_soon")
def test_an_interrupted_flush_leaves_workers_as_they_were(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, **QUICK)
    emit(client, 2)
    with pytest.raises(Interrupt):
        client.flush(10)
    # Workers in a hurry write event by event, and give a sink that is down no rest.
    assert [w._patience._hurry for w in client.cell.get().dispatcher._workers] == [0]
    hung.release.set()
    assert client.flush() == 0
    assert ledger(client, "hung").delivered == 2


@pytest.mark.usefixtures("_interrupted_soon")
def test_after_an_interrupted_shutdown_the_worker_still_does_its_work_and_ends(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, batch_events=1, **QUICK)
    emit(client, 2)
    with pytest.raises(Interrupt):
        client.shutdown(10)
    assert client.shutdown(0.1).failed == 0
    emit(client, 1)
    hung.release.set()
    # Not by joining: Python takes a thread whose join was interrupted for one that has ended.
    deadline = time.monotonic() + 5
    while (found := ledger(client, "hung")).pending and time.monotonic() < deadline:
        time.sleep(0.005)
    assert (found.delivered, found.pending, found.dropped) == (3, 0, {"shutdown": 1})


def test_frozen_clocks_freeze_no_wait(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """As tools that freeze time do: whatever a module calls by the name of a clock becomes one that stands still."""
    clocks = {id(getattr(time, name)) for name in ("monotonic", "monotonic_ns", "time", "time_ns")}
    for module in [module for name, module in sys.modules.items() if name.startswith("spanforge")] + [time]:
        for name, value in list(vars(module).items()):
            if id(value) in clocks:
                monkeypatch.setattr(module, name, lambda: 1_000)
    hung, healthy = HungSink(), MemorySink()
    client = connect(hung, healthy, **QUICK)
    emit(client, 1)
    left: list[int] = []
    waiting = threading.Thread(target=lambda: left.append(client.flush(0.1)), daemon=True)
    waiting.start()
    waiting.join(20)
    hung.release.set()
    assert left == [1]
    assert len(healthy.events) == 1


@pytest.mark.parametrize("whole_sessions", [False, True])
def test_an_interrupt_while_delivering_in_line_reaches_the_user_and_loses_nothing(
    whole_sessions: bool, connect: Connect
) -> None:
    sink = MoodySink(whole_sessions=whole_sessions)
    client = connect(sink)
    sink.mood = "interrupted"
    with pytest.raises(KeyboardInterrupt):
        emit(client, 1)
    assert ledger(client, "moody").pending == 1
    sink.mood = "well"
    emit(client, 1)
    assert ledger(client, "moody").delivered == 2
    assert sink.taken == sorted(sink.taken)


def test_a_long_back_off_is_over_when_the_time_to_stop_has_come(connect: Connect) -> None:
    sink = Scripted(*[ConnectionError() for _ in range(9)])
    client = connect(sink, **{**QUICK, "backoff_s": 60.0, "max_backoff_s": 60.0})
    emit(client, 3)
    while not sink.writes:
        time.sleep(0.001)
    assert 1 <= client.shutdown(0.2) <= 4, "the summary of the open session is among them"
    deadline = time.monotonic() + 10
    while (found := ledger(client)).pending and time.monotonic() < deadline:
        time.sleep(0.005)
    assert (found.delivered, found.pending, found.dropped) == (0, 0, {"shutdown": 4})


def test_looking_for_the_event_to_blame_is_over_when_the_time_to_stop_has_come(connect: Connect) -> None:
    class Slow(Scripted):
        def write(self, events: Sequence[Event], /) -> None:
            super().write(events)
            if len(events) > 1:
                raise SinkWriteError("TOO_MANY", retryable=False)
            time.sleep(0.1)

    sink = Slow()
    client = connect(sink, **QUICK)
    with client.cell.get().dispatcher.log.lock:  # so that the worker finds all of them at once
        emit(client, 9)
    while len(sink.writes) < 2:
        time.sleep(0.001)
    client.shutdown(0.25)
    deadline = time.monotonic() + 10
    while (found := ledger(client)).pending and time.monotonic() < deadline:
        time.sleep(0.005)
    assert 0 < found.delivered < 9
    assert found.dropped == {"shutdown": 10 - found.delivered}


def test_a_sink_that_rests_is_left_alone_while_nobody_waits(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_PROBE_EVERY_S", 0.01)
    monkeypatch.setattr(writer, "_FIRST_REST_S", 0.2)
    sink = Scripted(ConnectionError())
    client = connect(sink, max_attempts=1, **QUICK)
    emit(client, 1)
    deadline = time.monotonic() + 5
    while not sink.writes and time.monotonic() < deadline:
        time.sleep(0.001)
    emit(client, 1)
    while len(sink.writes) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert sink.at[1] - sink.at[0] >= 0.19
    assert client.flush() == 0
    assert ledger(client).delivered == 2
