"""Work of several parties in a few threads: parties take turns, and what must not overlap waits in one line."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from spanforge import _clock

T = TypeVar("T")
_Line: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    line: _Line
    work: Callable[[], object]
    done: Future[Any] = field(default_factory=Future[Any])


class FairQueue:
    """Runs tasks in at most so many threads, which are there only while there is work.

    Between two tasks of one party every other party that has one begins one; and no party is at work in all of the
    threads, so that the task of another begins at once however long those at work take.

    Args:
        workers: Threads at once; one of several is not given to a party that has all others.
        name: What the threads are called.
        alone_after_s: Seconds without another after which a party may have all threads, for tasks that are short: the
            first of another then waits as long as one of them takes. Never, where left out.
    """

    def __init__(self, workers: int, name: str, alone_after_s: float | None = None) -> None:
        self._workers = workers
        self._most = max(1, workers - 1)
        self._name = name
        self._alone_after_s = alone_after_s
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._waiting: OrderedDict[str, OrderedDict[str, deque[_Task]]] = OrderedDict()
        self._at_work: set[_Line] = set()
        self._shares: Counter[str] = Counter()
        self._closing = threading.Event()

    def submit(self, party: str, line: str, work: Callable[[], T]) -> Future[T]:
        """Queue a task, behind those of its line.

        Args:
            party: Whose turn it takes.
            line: Tasks of one line of a party run one after the other, in order.
            work: The task.

        Returns:
            What tells when it is over, and holds what it returned or the error it ended in; cancelled where the queue
            is closed before.
        """
        task = _Task((party, line), work)
        with self._lock:
            self._see(party)
            self._waiting.setdefault(party, OrderedDict()).setdefault(line, deque()).append(task)
            self._begin()
        if self.is_closing:
            self._drop()
        return task.done

    @property
    def is_closing(self) -> bool:
        """Whether no more tasks are begun."""
        return self._closing.is_set()

    def stop(self) -> None:
        """Begin nothing more; those at work may ask `is_closing`."""
        self._closing.set()
        self._drop()

    def close(self) -> None:
        """Begin nothing more, and wait for what is at work."""
        self.stop()
        with self._idle:
            self._idle.wait_for(lambda: not self._at_work)

    def _begin(self) -> None:
        """Begin what may begin; the lock is held."""
        while len(self._at_work) < self._workers and not self.is_closing and (task := self._next()) is not None:
            party, _ = task.line
            self._at_work.add(task.line)
            self._shares[party] += 1
            # A daemon: a process that ends waits for no task.
            threading.Thread(target=self._run, args=(task,), name=self._name, daemon=True).start()

    def _next(self) -> _Task | None:
        for party, lines in self._waiting.items():
            line = next((line for line in lines if (party, line) not in self._at_work), None)
            if line is not None and self._shares[party] < (self._workers if self._is_alone() else self._most):
                return self._taken(party, line)
        return None

    def _see(self, party: str) -> None:
        """Note that a party has something to do, and forget those that have had nothing for long."""
        if self._alone_after_s is not None:
            now = _clock.monotonic()
            self._seen = {name: at for name, at in self._seen.items() if now - at < self._alone_after_s} | {party: now}

    def _is_alone(self) -> bool:
        return self._alone_after_s is not None and len(self._seen) == 1

    def _taken(self, party: str, line: str) -> _Task:
        """Take the first task of a line; line and party go behind all others."""
        lines = self._waiting[party]
        task = lines[line].popleft()
        lines.move_to_end(line)
        self._waiting.move_to_end(party)
        if not lines[line]:
            del lines[line]
        if not lines:
            del self._waiting[party]
        return task

    def _run(self, task: _Task) -> None:
        if task.done.set_running_or_notify_cancel():
            with _Outcome(task.done) as outcome:
                outcome.result = task.work()
        party, _ = task.line
        with self._idle:
            self._at_work.discard(task.line)
            self._shares -= Counter([party])
            self._begin()
            self._idle.notify_all()

    def _drop(self) -> None:
        with self._lock:
            left = [task for lines in self._waiting.values() for line in lines.values() for task in line]
            self._waiting.clear()
        for task in left:
            task.done.cancel()


class _Outcome(AbstractContextManager["_Outcome"]):
    """Gives a future what its work ended in, be it an error nobody foresaw: whoever waits for it hears of it."""

    def __init__(self, done: Future[Any]) -> None:
        self._done = done
        self.result: object = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None:
            self._done.set_result(self.result)
        else:
            self._done.set_exception(error)
        return True
