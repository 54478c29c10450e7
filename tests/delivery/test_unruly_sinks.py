"""Sinks, and logs, that raise, return and claim what they like: the ledger holds, nothing reaches the application."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from support.delivering import QUICK, emit, ledger
from support.faulty_sinks import Scripted

from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sdk import SFRAGClient
from spanforge.sinks.base import BaseSink, Receipt
from spanforge.sinks.memory import MemorySink

Connect = Callable[..., SFRAGClient]


@pytest.mark.parametrize("claimed", [-3, 99, None, "1", 0.5, math.nan, True])
def test_a_sink_that_claims_nonsense_is_held_to_what_it_was_given(claimed: Any, connect: Connect) -> None:
    sink = Scripted(SinkWriteError("ODD", delivered=claimed))
    client = connect(sink, **QUICK)
    emit(client, 1)
    assert client.flush() == 0
    assert ledger(client).balanced
    assert ledger(client).delivered == 1


@pytest.mark.parametrize("asked", ["3600", math.nan, -1, None, [3600]])
def test_a_receiver_that_asks_for_nonsense_is_tried_again_as_usual(asked: Any, connect: Connect) -> None:
    sink = Scripted(SinkWriteError(["no", "text"], retry_after_s=asked))  # type: ignore[arg-type]
    client = connect(sink, **QUICK)
    emit(client, 1)
    assert client.flush() == 0
    assert ledger(client).delivered == 1


def test_an_error_made_of_text_is_named_without_it(connect: Connect) -> None:
    client = connect(Scripted(type("text of a document", (OSError,), {})()))
    emit(client, 1)
    assert ledger(client).last_error == "class"


class Unheard(BaseException):
    """Outside of what `except Exception` catches."""


@pytest.mark.parametrize("raised", [SystemExit, asyncio.CancelledError, GeneratorExit, Unheard, KeyboardInterrupt])
def test_whatever_a_sink_raises_in_its_thread_it_has_failed_and_nothing_more(
    raised: type[BaseException], connect: Connect
) -> None:
    sink = Scripted(raised())
    client = connect(sink, **QUICK)
    emit(client, 3)
    assert client.flush() == 0
    assert ledger(client).delivered == 3
    assert ledger(client).last_error == raised.__name__


@pytest.mark.parametrize("raised", [SystemExit, asyncio.CancelledError, GeneratorExit, Unheard])
def test_nor_does_it_reach_the_caller_it_delivers_in_line_for(raised: type[BaseException], connect: Connect) -> None:
    client = connect(Scripted(raised()))
    emit(client, 3)
    assert (ledger(client).delivered, ledger(client).failed) == (2, 1)


def test_a_sink_cannot_change_its_batch(connect: Connect) -> None:
    class Greedy(Scripted):
        def write(self, events: Sequence[Event], /) -> None:
            events.clear()  # type: ignore[attr-defined]

    client = connect(Greedy())
    emit(client, 1)
    assert ledger(client).balanced
    assert (ledger(client).failed, ledger(client).last_error) == (1, "AttributeError")


def test_what_a_receipt_says_of_more_events_than_there_are_is_not_believed(connect: Connect) -> None:
    class Boaster(BaseSink):
        name = "boaster"

        def write(self, _events: Sequence[Event], /) -> Receipt:
            return Receipt(delivered=5, failed=5, dropped={"bored": 5})

    client = connect(Boaster())
    emit(client, 1)
    assert ledger(client, "boaster").to_dict() == {
        "accepted": 1, "delivered": 1, "failed": 0, "dropped": {}, "pending": 0, "last_error": "",
    }  # fmt: skip


class Unreadable(Receipt):
    """A receipt that refuses to be read."""

    @property
    def delivered(self) -> int:  # type: ignore[override]
        raise ValueError

    def __init__(self) -> None:
        """Set nothing: what is frozen cannot be set."""


@pytest.mark.parametrize(
    "make",
    [
        Unreadable,
        lambda: Receipt(delivered=None),
        lambda: Receipt(delivered="3"),
        lambda: Receipt(delivered=1.5),
        lambda: Receipt(delivered=math.nan),
        lambda: Receipt(delivered=True),
        lambda: Receipt(delivered=-5, failed=-5, dropped={"bored": -5}),
        lambda: Receipt(dropped=None),
        lambda: Receipt(dropped=7),
        lambda: Receipt(dropped=[("bored", 1)]),
        lambda: Receipt(dropped={"bored": None}),
    ],
)
@pytest.mark.parametrize("options", [{}, QUICK], ids=["in line", "thread"])
def test_a_receipt_that_makes_no_sense_settles_nothing(
    make: Callable[..., Any], options: dict[str, Any], connect: Connect
) -> None:
    class Mad(BaseSink):
        name = "mad"

        def write(self, _events: Sequence[Event], /) -> Receipt:
            return make()

    client = connect(Mad(), **options)
    emit(client, 3)
    assert client.flush() == 0
    assert (ledger(client, "mad").pending, ledger(client, "mad").balanced) == (3, True)
    assert ledger(client, "mad").last_error == ""


@pytest.mark.parametrize(
    ("dropped", "counted"),
    [
        (MappingProxyType({"too_old": 2}), {"too_old": 2}),
        ({"too_old": 1, "too_large": 1}, {"too_old": 1, "too_large": 1}),
        ({None: 2}, {"unnamed": 2}),
    ],
    ids=str,
)
def test_a_receipt_may_give_its_reasons_in_any_mapping(dropped: Any, counted: dict[str, int], connect: Connect) -> None:
    class Dropping(BaseSink):
        name = "dropping"
        kept = 0

        def write(self, events: Sequence[Event], /) -> Receipt:
            self.kept += len(events)
            return Receipt(delivered=1, dropped=dropped) if self.kept == 3 else Receipt()

    client = connect(Dropping())
    emit(client, 3)
    found = ledger(client, "dropping")
    assert (found.delivered, found.dropped, found.pending) == (1, counted, 0)


def test_a_sink_may_return_what_it_likes(connect: Connect) -> None:
    class Habit(MemorySink):
        def write(self, events: Sequence[Event], /) -> int:  # type: ignore[override]
            super().write(events)
            return len(events)

    client = connect(Habit(), **QUICK)
    emit(client, 3)
    assert client.flush() == 0
    assert ledger(client, "memory").delivered == 3


def test_what_a_sink_traces_from_its_own_write_is_counted_and_goes_no_further(connect: Connect) -> None:
    clients: list[SFRAGClient] = []

    class Tracing(MemorySink):
        def write(self, events: Sequence[Event], /) -> None:
            super().write(events)
            clients[0].trace_query("again", session_id="s")
            clients[0].flush(0.0)

    for options in ({}, QUICK):
        clients[:] = [connect(Tracing(), **options)]
        emit(clients[0], 1)
        clients[0].flush()
        found = ledger(clients[0], "memory")
        assert (found.delivered, found.dropped) == (1, {"traced_by_sink": 1})


@pytest.mark.parametrize("options", [{}, QUICK], ids=["in line", "thread"])
def test_another_caller_in_a_sinks_thread_is_not_taken_for_the_sink(options: dict[str, Any], connect: Connect) -> None:
    """Under gevent all callers are in one thread, each in a context of its own, and take turns within a write."""
    clients: list[SFRAGClient] = []

    class Yielding(MemorySink):
        def write(self, events: Sequence[Event], /) -> None:
            super().write(events)
            if len(self.events) == 1:
                contextvars.Context().run(emit, clients[0], 3)

    clients.append(connect(Yielding(), **options))
    emit(clients[0], 1)
    assert clients[0].flush() == 0
    found = ledger(clients[0], "memory")
    assert (found.delivered, found.dropped) == (4, {})


def test_a_log_that_fails_costs_its_line_and_nothing_else(connect: Connect) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError

    handler = Broken()
    logging.getLogger("spanforge").addHandler(handler)
    try:
        sink = Scripted(ConnectionError())
        client = connect(sink, **QUICK)
        client.trace_query("q", session_id="s", top_k=0)
        assert client.flush() == 0
        assert ledger(client).delivered == 1
        assert client.get_status().replaced == {"top_k": 1}
    finally:
        logging.getLogger("spanforge").removeHandler(handler)
