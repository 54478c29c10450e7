"""The queue of ingestion jobs: parties take turns, lines keep their order, and one party never has every thread."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from spanforge.reference.ingesting.fair_queue import FairQueue

if TYPE_CHECKING:
    from collections.abc import Generator

PATIENCE_S = 30


@contextmanager
def _queue(workers: int) -> Generator[FairQueue]:
    queue = FairQueue(workers, "test")
    try:
        yield queue
    finally:
        queue.close()


def test_parties_take_turns_and_lines_keep_their_order() -> None:
    gate, done = threading.Event(), list[str]()
    with _queue(1) as queue:
        queue.submit("north", "first", lambda: gate.wait(PATIENCE_S))
        tasks = [queue.submit("north", f"s{i % 2}", lambda i=i: done.append(f"n{i}")) for i in range(6)]
        tasks += [queue.submit("south", "s", lambda i=i: done.append(f"s{i}")) for i in range(2)]
        tasks.append(queue.submit("east", "s", lambda: done.append("e0")))
        gate.set()
        for task in tasks:
            task.result(PATIENCE_S)
    assert set(done[:3]) == {"n0", "s0", "e0"}
    assert [one for one in done if one in {"n0", "n2", "n4"}] == ["n0", "n2", "n4"]
    assert done.index("s1") < done.index("n2")


def test_one_party_leaves_a_thread_to_the_others() -> None:
    gate = threading.Event()
    with _queue(3) as queue:
        greedy = [queue.submit("north", f"s{i}", lambda: gate.wait(PATIENCE_S)) for i in range(5)]
        queue.submit("south", "s", lambda: None).result(PATIENCE_S)
        assert sum(task.done() for task in greedy) == 0
        gate.set()
        for task in greedy:
            task.result(PATIENCE_S)


def test_a_party_that_is_alone_for_long_has_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    now, gate = [100.0], threading.Event()
    monkeypatch.setattr("spanforge._clock.monotonic", lambda: now[0])
    queue = FairQueue(2, "test", alone_after_s=10.0)

    def at_work_of_two() -> int:
        with queue._idle:  # a thread that has given its result may not have gone yet
            assert queue._idle.wait_for(lambda: not queue._at_work, PATIENCE_S)
        gate.clear()
        tasks = [queue.submit("north", f"s{i}", lambda: gate.wait(PATIENCE_S)) for i in range(2)]
        begun = queue._shares["north"]
        gate.set()
        for task in tasks:
            task.result(PATIENCE_S)
        return begun

    try:
        assert at_work_of_two() == 2
        queue.submit("south", "s", lambda: None).result(PATIENCE_S)
        assert at_work_of_two() == 1
        now[0] += 9.0
        assert at_work_of_two() == 1
        now[0] += 2.0
        assert at_work_of_two() == 2
    finally:
        queue.close()


def test_tasks_of_one_line_never_overlap() -> None:
    inside, most = list[int](), list[int]()
    with _queue(4) as queue:

        def work() -> None:
            inside.append(1)
            most.append(len(inside))
            inside.pop()

        for task in [queue.submit("north", "s", work) for _ in range(50)]:
            task.result(PATIENCE_S)
    assert set(most) == {1}


def test_an_error_is_the_waiters_and_ends_nothing_else() -> None:
    with _queue(1) as queue:
        failing = queue.submit("north", "s", lambda: 1 / 0)
        queue.submit("north", "s", lambda: None).result(PATIENCE_S)
        with pytest.raises(ZeroDivisionError):
            failing.result()


def test_a_closed_queue_begins_nothing() -> None:
    gate = threading.Event()
    queue = FairQueue(1, "test")
    running = queue.submit("north", "s", lambda: gate.wait(PATIENCE_S))
    waiting = queue.submit("north", "s", lambda: None)
    queue.stop()
    late = queue.submit("south", "s", lambda: None)
    assert waiting.cancelled()
    assert late.cancelled()
    gate.set()
    queue.close()
    assert running.done()
