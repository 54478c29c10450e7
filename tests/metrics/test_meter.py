from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanforge.metrics import meter as module
from spanforge.metrics.instruments import Instrument, Reading
from spanforge.metrics.meter import Meter, Snapshot


def _read(_event_type: str, payload: Any) -> Iterator[Reading]:
    yield (("kind", payload["kind"]),), payload["value"]


SIZES = Instrument("sizes", "1", "Sizes.", ("made",), _read, (1.0, 10.0))
SUM = Instrument("sum", "1", "Their sum.", ("made",), _read)


def record(meter: Meter, kind: str, *values: float) -> None:
    for value in values:
        meter.record("made", {"kind": kind, "value": value})


def totals(taken: Snapshot) -> dict[tuple[str, str], float]:
    return {
        (instrument.name, attributes[0][1]): point.total
        for instrument, found in taken.points.items()
        for attributes, point in found.items()
    }


def test_buckets_include_their_upper_bound():
    meter = Meter([SIZES])
    record(meter, "a", 0.5, 1, 1.5, 10, 11)
    (point,) = meter.snapshot().points[SIZES].values()
    assert (point.count, point.total, point.buckets) == (5, 24, (2, 2, 1))


def test_events_that_no_instrument_reads_cost_nothing():
    meter = Meter([SUM])
    meter.record("other", {})
    assert meter.snapshot().points == {}


def test_what_is_noted_is_bounded(monkeypatch: pytest.MonkeyPatch):
    meter = Meter([SUM])
    record(meter, "a", *[1] * 5_000)
    assert len(meter._unread) < 1_000
    meter.record("made", {"kind": "a", "value": 1}, 1 << 30)
    assert not meter._unread
    assert totals(meter.snapshot()) == {("sum", "a"): 5_001}


def test_series_are_bounded_and_what_is_beyond_shares_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MOST_SERIES", 3)
    meter = Meter([SUM])
    for number in range(10):
        record(meter, str(number), 1)
    assert totals(meter.snapshot()) == {("sum", "0"): 1, ("sum", "1"): 1, ("sum", "2"): 1, ("sum", "true"): 7}


def test_a_trace_call_of_a_signal_handler_in_the_middle_loses_nothing():
    meter = Meter([Instrument("sum", "1", "", ("made",), lambda *_: interrupted())])
    calls: list[int] = []

    def interrupted() -> Iterator[Reading]:
        calls.append(1)
        if len(calls) == 1:
            # As a handler that comes while this thread adds up, and fills what is noted.
            for _ in range(600):
                meter.record("made", {})
        yield (), 1

    meter.record("made", {})
    meter.read()
    assert meter.snapshot().points[meter._instruments[0]][()].total == 601


def test_totals_are_sent_again_and_again_and_keep_their_start():
    meter = Meter([SUM])
    record(meter, "a", 1)
    first = meter.outgoing()
    meter.settle(first)
    record(meter, "a", 2)
    second = meter.outgoing()
    assert (totals(first), totals(second)) == ({("sum", "a"): 1}, {("sum", "a"): 3})
    assert first.start_ns == second.start_ns <= first.end_ns <= second.end_ns


def test_deltas_hold_what_is_new_and_follow_one_another():
    meter = Meter([SIZES, SUM], delta=True)
    record(meter, "a", 1)
    first = meter.outgoing()
    record(meter, "a", 20)
    record(meter, "b", 5)
    meter.settle(first)
    second = meter.outgoing()
    assert totals(second) == {("sizes", "a"): 20, ("sum", "a"): 20, ("sizes", "b"): 5, ("sum", "b"): 5}
    assert second.points[SIZES][(("kind", "a"),)].buckets == (0, 0, 1)
    assert second.start_ns == first.end_ns
    meter.settle(second)
    assert meter.outgoing().points == {}


def test_a_delta_that_was_not_taken_is_in_the_next():
    meter = Meter([SUM], delta=True)
    record(meter, "a", 1)
    first = meter.outgoing()
    meter.note("http_503")
    record(meter, "a", 2)
    assert totals(meter.outgoing()) == {("sum", "a"): 3}
    assert meter.outgoing().start_ns == first.start_ns
    assert meter.ledger().last_error == "http_503"


@given(
    delta=st.booleans(),
    steps=st.lists(st.sampled_from(["a", "b", "take", "deliver", "refuse", "some", "drop", "note"]), max_size=40),
)
def test_the_ledger_adds_up_whatever_the_receiver_does(delta: bool, steps: list[str]):
    meter, taken, accepted = Meter([SIZES, SUM], delta=delta), None, 0
    for step in steps:
        match step:
            case "a" | "b":
                record(meter, step, 2)
            case "take":
                taken = meter.outgoing()
            case "note":
                meter.note("http_503")
            case "deliver" | "refuse" | "some" | "drop" if taken is not None:
                refused = {"refuse": 1_000, "some": 1}.get(step, 0)
                meter.settle(taken, refused=refused, dropped="shutdown" if step == "drop" else "")
                taken = None
            case _:
                pass
        ledger = meter.ledger()
        assert ledger.balanced
        assert ledger.accepted >= accepted
        accepted = ledger.accepted
        assert ledger.lost == ledger.failed + ledger.dropped.get("shutdown", 0)
