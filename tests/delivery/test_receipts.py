"""Receipts: 0 only where all was delivered, and what is behind any other number."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable

import pytest
from support.delivering import QUICK, emit, ledger
from support.faulty_sinks import HungSink, Scripted

from spanforge.exceptions import SinkWriteError
from spanforge.sdk import DeliveryReceipt, SFRAGClient

Connect = Callable[..., SFRAGClient]


def test_what_failed_is_said_once(connect: Connect) -> None:
    client = connect(Scripted(SinkWriteError("REFUSED", retryable=False)), **QUICK)
    emit(client, 1)
    receipt = client.flush()
    assert (receipt, receipt.pending, receipt.failed, receipt.dropped) == (1, 0, 1, {})
    assert client.flush() == 0


def test_what_is_in_the_hands_of_a_hung_sink_is_pending_and_the_status_says_so(connect: Connect) -> None:
    hung = HungSink()
    client = connect(hung, batch_events=2, **QUICK)
    client.join_session("s")
    with client.cell.get().dispatcher.log.lock:  # so that the worker finds both at once
        emit(client, 2)
    assert hung.entered.wait(30)
    receipt = client.shutdown(0.05)
    assert (receipt.pending, receipt.dropped) == (2, {"shutdown": 1}), "the summary could not be taken any more"
    assert client.get_status().status == "degraded"
    assert ledger(client, "hung").balanced
    hung.release.set()


def test_what_sampling_left_out_is_no_loss(connect: Connect) -> None:
    client = connect(Scripted(), sample_rate=0.0, **QUICK)
    emit(client, 3)
    assert client.shutdown() == 0
    assert ledger(client).dropped == {"sampled": 3}


def test_a_wait_that_fails_itself_does_not_say_that_all_was_delivered(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise OSError

    client = connect(Scripted())
    monkeypatch.setattr(client.cell.get().dispatchers, "flush", fail)
    assert client.flush().pending == 1


def test_a_receipt_is_a_number_wherever_a_number_is_wanted() -> None:
    receipt = DeliveryReceipt(1, 2, {"queue_full": 3})
    assert (receipt, f"{receipt}", str(receipt), json.dumps(receipt)) == (6, "6", "6", "6")
    assert repr(receipt) == "DeliveryReceipt(pending=1, failed=2, dropped={'queue_full': 3})"
    for same in (copy.copy(receipt), pickle.loads(pickle.dumps(receipt))):  # noqa: S301  our own bytes
        assert (same, same.pending, same.failed, same.dropped) == (6, 1, 2, {"queue_full": 3})
