"""Sinks that `configure()` replaced: what they have not delivered stays visible, in a bounded number of ledgers."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

import pytest
from support.delivering import QUICK, emit
from support.faulty_sinks import HungSink, Scripted

from spanforge.exceptions import SinkWriteError
from spanforge.sdk import SFRAGClient, _cell

Connect = Callable[..., SFRAGClient]


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> Generator[list[HungSink]]:
    """Forty sinks that hang until the test is over, and are waited for a moment only when they are replaced."""
    monkeypatch.setattr(_cell, "_RECONFIGURE_S", 0.0)
    sinks = [HungSink(f"hung-{number}") for number in range(40)]
    yield sinks
    for sink in sinks:
        sink.release.set()


def one_event_each(client: SFRAGClient, sinks: list[HungSink]) -> None:
    for sink in sinks:
        client.configure(sinks=sink, **QUICK)
        emit(client, 1)
        assert sink.entered.wait(30)
    client.configure(sinks=Scripted(), **QUICK)


def test_what_a_replaced_sink_still_holds_is_pending_until_it_is_written(
    connect: Connect, hung: list[HungSink]
) -> None:
    client = connect()
    one_event_each(client, hung[:1])
    for _ in range(3):
        assert client.flush().pending == 1
        status = client.get_status()
        assert (status.status, status.sinks["hung-0 (replaced)"].pending) == ("degraded", 1)
        assert all(ledger.balanced for ledger in status.sinks.values())
    hung[0].release.set()
    deadline = time.monotonic() + 30
    while client.flush() and time.monotonic() < deadline:
        time.sleep(0.01)
    status = client.get_status()
    assert (status.status, list(status.sinks)) == ("ok", ["scripted"])


def test_what_a_replaced_sink_lost_is_said_once_in_a_receipt_and_stays_in_the_status(connect: Connect) -> None:
    client = connect(Scripted(SinkWriteError("REFUSED", retryable=False)), **QUICK)
    emit(client, 1)
    client.configure(sinks=Scripted(), **QUICK)
    assert [client.flush().failed, client.flush().failed] == [1, 0]
    for _ in range(2):
        ledger = client.get_status().sinks["scripted (replaced)"]
        assert (ledger.failed, ledger.last_error, ledger.balanced) == (1, "REFUSED", True)
        assert client.get_status().status == "degraded"
        client.configure(sinks=Scripted(), **QUICK)


def test_however_many_are_replaced_their_ledgers_are_few_and_add_up(connect: Connect, hung: list[HungSink]) -> None:
    client = connect()
    one_event_each(client, hung)
    for _ in range(2):
        assert client.flush().pending == len(hung)
        ledgers = client.get_status().sinks
        assert sum(ledger.pending for ledger in ledgers.values()) == len(hung)
        assert all(ledger.balanced for ledger in ledgers.values())
        assert len(ledgers) < len(hung)
    assert client.shutdown(0.1).pending == len(hung)


@pytest.mark.slow
def test_losses_of_more_sinks_than_are_looked_at_again_are_said_once(connect: Connect) -> None:
    client = connect()
    for _ in range(20):
        client.configure(sinks=Scripted(SinkWriteError("REFUSED", retryable=False)), **QUICK)
        emit(client, 1)
    client.configure(sinks=Scripted(), **QUICK)
    assert [client.flush().failed, client.flush().failed] == [20, 0]
