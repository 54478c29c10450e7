"""Threads that take turns by choice: one runs at a time, and every lock, wait and change of state may pass the turn on.

`Schedule` stands in for the module `threading`, and for the clock, where the code under test looks them up. Its threads
are real ones; what is decided is which of them goes on. Time passes only where all of them wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pytest

from spanforge import _clock

__all__ = ["DeadlockError", "Schedule"]

_STUCK_S: Final = 30.0


class DeadlockError(AssertionError):
    """All threads wait, and none of them for a time."""


class _Abandoned(BaseException):
    """Ends a thread of a run that is over."""


@dataclass(eq=False)
class _Turn:
    """One thread: what it waits for, and until when."""

    name: str
    may_go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    ready: Callable[[], bool] | None = None
    until: float | None = None
    alive: bool = True


class Schedule:
    """Runs threads one at a time.

    Args:
        switches: After how many steps another thread is to go on, and which of those that can; otherwise the one that
            runs goes on for as long as it can.
    """

    def __init__(self, switches: Mapping[int, int]) -> None:
        self.now = 1_000.0
        self.steps = 0
        self._switches = switches
        self._turns: list[_Turn] = []
        self._mine = threading.local()
        self._running: _Turn | None = None
        self._failure: BaseException | None = None
        self._over = threading.Event()

    def rule(self, monkeypatch: pytest.MonkeyPatch, *modules: Any) -> None:
        """Take the place of `threading` in modules, and of the clock everywhere."""
        for module in modules:
            monkeypatch.setattr(module, "threading", self)
        monkeypatch.setattr(_clock, "monotonic", lambda: self.now)

    # -- for the test -------------------------------------------------------------------------------------------------

    def run(self, *programs: Callable[[], None]) -> None:
        """Run programs, each in a thread of its own, until all threads are at their end; raise what one of them did."""
        for number, program in enumerate(programs):
            self.Thread(target=program, name=f"program {number}").prepare()
        self._pass_on()
        assert self._over.wait(_STUCK_S), "a thread waits for something that the schedule does not know"
        if self._failure is not None:
            raise self._failure

    def step(self) -> None:
        """Let another thread go on here, perhaps."""
        self._wait(None, None)

    # -- turns --------------------------------------------------------------------------------------------------------

    def _wait(self, ready: Callable[[], bool] | None, seconds: float | None) -> None:
        """Go on when it is this thread's turn, which is not before `ready`, or `seconds` have passed."""
        turn: _Turn | None = getattr(self._mine, "turn", None)
        if self._over.is_set() and turn is not None:
            raise _Abandoned
        if turn is None:  # a thread that is not ours: a finaliser's, or the test's own before and after the run
            return
        turn.ready, turn.until = ready, None if seconds is None else self.now + seconds
        self._pass_on()
        turn.may_go.acquire()
        turn.ready = turn.until = None
        if self._over.is_set():
            raise _Abandoned

    def _pass_on(self) -> None:
        able = self._able()
        if not able and (times := [turn.until for turn in self._turns if turn.alive and turn.until is not None]):
            self.now = min(times)
            able = self._able()
        if able:
            self.steps += 1
            # The one that runs first, then round from it, so that all of them have their turn.
            now = next((number for number, turn in enumerate(able) if turn is self._running), 0)
            self._running = able[(now + self._switches.get(self.steps, 0)) % len(able)]
            self._running.may_go.release()
        else:
            self._finish(DeadlockError(str(waiting)) if (waiting := [t.name for t in self._turns if t.alive]) else None)

    def _able(self) -> list[_Turn]:
        return [
            turn
            for turn in self._turns
            if turn.alive
            and (turn.ready is None or turn.ready() or (turn.until is not None and turn.until <= self.now))
        ]

    def _finish(self, failure: BaseException | None) -> None:
        if not self._over.is_set():
            self._failure = failure
            self._over.set()
            for turn in self._turns:
                turn.may_go.release()

    # -- what stands in for the module `threading` --------------------------------------------------------------------

    get_ident = staticmethod(threading.get_ident)
    main_thread = staticmethod(threading.main_thread)

    def current_thread(self) -> Any:
        """As in `threading`."""
        return getattr(self._mine, "thread", None) or threading.current_thread()

    def RLock(self) -> _Lock:  # noqa: N802  the name in `threading`
        """As in `threading`."""
        return _Lock(self)

    def Condition(self, lock: _Lock) -> _Condition:  # noqa: N802  the name in `threading`
        """As in `threading`."""
        return _Condition(self, lock)

    def Thread(self, *, target: Callable[[], None], name: str = "", daemon: bool = True) -> _Thread:  # noqa: N802
        """As in `threading`."""
        return _Thread(self, target, name, daemon=daemon)

    def take_part(self, thread: _Thread, turn: _Turn) -> None:
        """Begin in a new thread: wait for the first turn."""
        self._mine.turn, self._mine.thread = turn, thread
        turn.may_go.acquire()
        if self._over.is_set():
            raise _Abandoned

    def leave(self, turn: _Turn, failure: BaseException | None) -> None:
        """End in a thread: pass the turn on for the last time."""
        turn.alive = False
        if failure is not None and not isinstance(failure, _Abandoned):
            self._finish(failure)
        elif not self._over.is_set():
            self._pass_on()

    def enter(self, name: str) -> _Turn:
        """Make a turn for a new thread."""
        turn = _Turn(name)
        self._turns.append(turn)
        return turn

    def wait_until(self, ready: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait, as a lock or a condition does."""
        self._wait(ready, seconds)


class _Thread:
    """A thread that takes its turn."""

    def __init__(self, schedule: Schedule, target: Callable[[], None], name: str, *, daemon: bool) -> None:
        self._schedule, self._target, self._name = schedule, target, name
        self._turn: _Turn | None = None
        self._daemon = daemon

    def prepare(self) -> None:
        """Be there, and wait for a turn."""
        self._turn = self._schedule.enter(self._name)
        threading.Thread(target=self._run, args=(self._turn,), daemon=True).start()

    def start(self) -> None:
        """As in `threading`; another may go on before it is there, and before the starter hears of it."""
        self._schedule.step()
        self.prepare()
        self._schedule.step()

    def is_alive(self) -> bool:
        """As in `threading`."""
        return self._turn is not None and self._turn.alive

    def join(self, timeout: float | None = None) -> None:
        """As in `threading`."""
        self._schedule.wait_until(lambda: not self.is_alive(), timeout)

    def _run(self, turn: _Turn) -> None:
        failure: BaseException | None = None
        try:
            self._schedule.take_part(self, turn)
            self._target()
        except BaseException as error:  # noqa: BLE001  the test is told
            failure = error
        self._schedule.leave(turn, failure)


class _Lock:
    """A re-entrant lock."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._owner = 0
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = threading.get_ident()
        if self._owner != me:
            seconds = None if blocking and timeout < 0 else max(0.0, timeout)
            self._schedule.wait_until(lambda: self._owner == 0, seconds)
            if self._owner != 0:
                return False
        self._owner, self._depth = me, self._depth + 1
        return True

    def release(self) -> None:
        if self._owner != threading.get_ident():
            raise RuntimeError("cannot release un-acquired lock")
        self._depth -= 1
        if self._depth == 0:
            self._owner = 0
            self._schedule.step()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def let_go(self) -> int:
        """Release it however often it was acquired; return how often that was."""
        depth, self._depth, self._owner = self._depth, 0, 0
        return depth

    def take_back(self, depth: int) -> None:
        """Acquire it as often as before."""
        self.acquire()
        self._depth = depth


class _Condition:
    """A condition over such a lock."""

    def __init__(self, schedule: Schedule, lock: _Lock) -> None:
        self._schedule, self._lock = schedule, lock
        self._told = 0

    def wait(self, timeout: float | None = None) -> None:
        told = self._told
        depth = self._lock.let_go()
        self._schedule.wait_until(lambda: self._told > told, timeout)
        self._lock.take_back(depth)

    def notify_all(self) -> None:
        self._told += 1
