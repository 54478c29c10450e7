"""What a worker raises by itself, where no sink is to blame: it goes on, nothing is lost, the status says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.delivering import QUICK, emit, ledger
from support.faulty_sinks import Scripted

from spanforge.delivery import worker
from spanforge.delivery.queue import EventLog
from spanforge.namespaces.event import Draft
from spanforge.sdk import SFRAGClient

Connect = Callable[..., SFRAGClient]


def fail_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: BaseException, calls: set[int]) -> None:
    """Let a step fail in a worker's thread, at some of its calls."""
    step, number = getattr(owner, name), 0

    def failing(*args: Any, **options: Any) -> Any:
        nonlocal number
        if threading.current_thread().name.startswith("spanforge "):
            number += 1
            if number in calls:
                raise error
        return step(*args, **options)

    monkeypatch.setattr(owner, name, failing)


@pytest.mark.parametrize("whole_sessions", [False, True])
@pytest.mark.parametrize("error", [MemoryError(), SystemExit(), GeneratorExit()], ids=repr)
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Draft, "event"),
        (EventLog, "take"),
        (EventLog, "waiting"),
        (worker.Supply, "waiting"),
        (worker.Worker, "_linger"),
    ],
)
def test_it_goes_on(
    owner: Any,
    name: str,
    error: BaseException,
    *,
    whole_sessions: bool,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_AFTER_A_FAILURE_S", 0.001)
    fail_at(monkeypatch, owner, name, error, {1, 3})
    sink = Scripted()
    sink.whole_sessions = whole_sessions
    client = connect(sink, **QUICK)
    emit(client, 10)
    assert client.flush(30) == 0
    assert len(sink.taken) == ledger(client).delivered == 10
    assert sink.taken == sorted(sink.taken)
    assert ledger(client).worker_failures >= 1
    assert ledger(client).last_error == type(error).__name__
    assert client.get_status().status == "degraded"


def test_a_thread_that_is_gone_is_replaced_by_the_next_flush(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Scripted()
    client = connect(sink, **QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(worker.Worker, "_run", lambda _worker: None)
        emit(client, 2)
        (only,) = client.cell.get().dispatcher._workers
        assert only._thread is not None
        only._thread.join(30)
    assert client.flush(30) == 0
    assert len(sink.taken) == 2
