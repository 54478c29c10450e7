"""The life of a dispatcher under every order of its steps: what was emitted before a stop arrives, or is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.interleaving import Schedule

from spanforge.delivery import dispatch, lifecycle, queue, worker
from spanforge.namespaces.event import Event
from spanforge.sdk import SFClientConfig, SFRAGClient, _cell, _runtime
from spanforge.sinks.base import BaseSink

OPERATIONS: Final = ("trace", "trace", "flush", "configure", "shutdown", "status")
SWITCHES: Final = st.dictionaries(st.integers(1, 120), st.integers(1, 3), max_size=5)
PROGRAMS: Final = st.lists(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=3), min_size=2, max_size=3)


class Recording(BaseSink):
    """Takes what it is given, and lets others go on meanwhile."""

    name = "recording"

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._busy = False
        self.taken: list[str] = []

    def write(self, events: Sequence[Event], /) -> None:
        assert not self._busy, "two calls of one sink at once"
        self._busy = True
        self._schedule.step()
        self.taken += [event.session_id for event in events if event.event_type == "llm.rag.query"]
        self._busy = False


class World:
    """One client, and what its programs have seen."""

    def __init__(self, schedule: Schedule, options: Mapping[str, Any]) -> None:
        self._schedule = schedule
        self._options = options
        self._sinks: list[Recording] = []
        self._stops = self._stopping = 0
        self._open = True
        self._due: list[str] = []
        self._begun: dict[str, int] = {}
        self._number = 0
        self._ended = 0
        self._client = SFRAGClient(SFClientConfig())
        self.configure()

    def program(self, operations: Sequence[str]) -> Callable[[], None]:
        def run() -> None:
            for operation in operations:
                getattr(self, operation)()
            self._ended += 1

        return run

    def last(self, programs: int) -> Callable[[], None]:
        """Return the program that waits for the others, and ends the client."""

        def run() -> None:
            self._schedule.wait_until(lambda: self._ended == programs)
            self.shutdown()
            self.check(self._due, "at the end")

        return run

    # -- operations -----------------------------------------------------------------------------------------------

    def trace(self) -> None:
        self._number += 1
        session_id = f"s{self._number}"
        if self._open:
            self._begun[session_id] = self._stops
        self._client.trace_query("q", session_id=session_id)

    def due(self) -> list[str]:
        """Return what has been accepted by now, and since the client was last open: no call need have returned."""
        for session_id, stops in list(self._begun.items()):
            if self._client.get_session(session_id) is not None and stops == self._stops:
                self._due.append(session_id)
                self._begun.pop(session_id, None)
        return list(self._due)

    def flush(self) -> None:
        due = self.due()
        if self._client.flush(60).pending == 0:
            self.check(due, "after a flush")

    def configure(self) -> None:
        stops, stopping = self._stops, self._stopping
        self._sinks.append(Recording(self._schedule))
        self._client.configure(sinks=self._sinks[-1], **self._options)
        self._open = not stopping and stops == self._stops

    def shutdown(self) -> None:
        due = self.due()
        self._open, self._stops, self._stopping = False, self._stops + 1, self._stopping + 1
        receipt = self._client.shutdown(60)
        self._stopping -= 1
        assert receipt.pending == receipt.failed == 0, receipt
        self.check(due, "after a stop")

    def status(self) -> None:
        assert all(ledger.balanced for ledger in self._client.get_status().sinks.values())

    def check(self, due: Sequence[str], when: str) -> None:
        taken = [session_id for sink in self._sinks for session_id in sink.taken]
        assert len(taken) == len(set(taken)), f"twice, {when}"
        assert set(due) <= set(taken), f"lost, {when}"


def explore(
    monkeypatch: pytest.MonkeyPatch, switches: Mapping[int, int], programs: Sequence[Sequence[str]], **options: Any
) -> None:
    """Run programs in the order that the switches make."""
    with monkeypatch.context() as patch:
        schedule = Schedule(switches)
        schedule.rule(patch, queue, worker, _cell, _runtime)
        advance = lifecycle.Lifecycle.advance

        def advance_and_let_others(life: lifecycle.Lifecycle, phase: lifecycle.Phase) -> bool:
            schedule.step()
            done = advance(life, phase)
            schedule.step()
            return done

        patch.setattr(lifecycle.Lifecycle, "advance", advance_and_let_others)
        world = World(schedule, {"batch_delay_s": 0.0, **options})
        schedule.run(*map(world.program, programs), world.last(len(programs)))


@given(switches=SWITCHES, programs=PROGRAMS)
@settings(max_examples=settings().max_examples * 6)
def test_nothing_emitted_before_a_stop_is_lost(
    monkeypatch: pytest.MonkeyPatch, switches: dict[int, int], programs: list[list[str]]
) -> None:
    explore(monkeypatch, switches, programs)


@given(switches=SWITCHES, programs=PROGRAMS)
def test_nor_where_callers_deliver_in_line(
    monkeypatch: pytest.MonkeyPatch, switches: dict[int, int], programs: list[list[str]]
) -> None:
    explore(monkeypatch, switches, programs, delivery="sync")


# -- the same search finds what it is there for ---------------------------------------------------------------------


def _absent_while_it_starts(self: dispatch.Dispatcher, _deadline: float) -> bool:
    for one in self._workers:
        if not one.ended and not (one._thread is not None and one._thread.is_alive()):
            with self.log.lock:
                one.give_up("shutdown")
                one.ended = True
    return all(one.ended for one in self._workers)


def test_a_worker_that_counts_as_absent_while_it_starts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it once was: who stopped in that moment gave up what a worker was about to deliver."""
    monkeypatch.setattr(dispatch.Dispatcher, "_end_in_line", _absent_while_it_starts)

    @given(switches=SWITCHES, programs=PROGRAMS)
    @settings(max_examples=2_000, derandomize=True, database=None, report_multiple_bugs=False, phases=[Phase.generate])
    def search(switches: dict[int, int], programs: list[list[str]]) -> None:
        explore(monkeypatch, switches, programs)

    with pytest.raises(AssertionError, match="lost"):
        search()
