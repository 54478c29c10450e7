"""One sink's worker: the thread that delivers to it, or the callers that do, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from spanforge import _clock
from spanforge._guard import attempt
from spanforge.delivery.ledger import SinkLedger
from spanforge.delivery.patience import Patience
from spanforge.delivery.queue import Cursor, EventLog
from spanforge.delivery.supply import GatheredSupply, Supply
from spanforge.delivery.writer import DeliveryPolicy, Writer
from spanforge.sinks.base import Sink

__all__ = ["Worker"]

_NOBODY: Final = 0
"""No thread has this for its ident."""
_IDLE_S: Final = 1.0
_EARLIER_S: Final = 0.2
_TURN_S: Final = 0.005
_LET_GO_S: Final = 0.001
_AFTER_A_FAILURE_S: Final = 0.05
_NEARLY_FULL: Final = 0.75
_ROUNDS: Final = 2
"""What a caller delivers in line: all that was there, and once more what came meanwhile. A sink that makes events as
it writes, in a thread of its own, would keep the caller for ever."""


class Worker:
    """Delivers one log to one sink.

    Args:
        sink: Where to.
        log: Where from.
        policy: How hard to try.
        on_idle: Called about once a second from the worker's thread, for the client's housekeeping.
    """

    def __init__(self, sink: Sink, log: EventLog, policy: DeliveryPolicy, on_idle: Callable[[], None]) -> None:
        self.sink = sink
        self.name = sink.name
        self.ended = False
        self._log = log
        self._policy = policy
        self._on_idle = on_idle
        self._cursor = Cursor()
        log.cursors.append(self._cursor)
        kind = GatheredSupply if getattr(sink, "whole_sessions", False) else Supply
        self._supply = kind(log, self._cursor, policy.source)
        self._patience = Patience(log)
        self._writer = Writer(sink, log, self._cursor, supply=self._supply, policy=policy, patience=self._patience)
        self._failures = 0
        self._thread: threading.Thread | None = None
        self._starter = _NOBODY
        self._earlier: Worker | None = None
        # Held while the sink is in use, by the thread or by a caller that delivers in line.
        self._using_sink = threading.RLock()
        self._drainer = _NOBODY
        self._close_due = False
        self._hung = False

    # -- what the dispatcher asks; the log's lock must be held unless it says otherwise ---------------------------

    def hurry(self, *, on: bool) -> None:
        """As `Patience.hurry`."""
        self._patience.hurry(on=on)

    def stop(self, deadline: float) -> None:
        """As `Patience.stop`."""
        self._patience.stop(deadline)

    @property
    def present(self) -> bool:
        """True where a thread, another than the calling one, will deliver what waits: it runs, or is being started.

        One that the calling thread itself is starting, under a signal handler, is not: to wait for it would be in vain.
        """
        thread = self._thread
        if self.ended or thread is None or thread is threading.current_thread():
            return False
        return thread.is_alive() or self._starter not in {_NOBODY, threading.get_ident()}

    def is_current(self) -> bool:
        """Tell whether the calling thread is the one that delivers, so that it would wait for itself."""
        return self._thread is threading.current_thread() or self._drainer == threading.get_ident()

    def outstanding(self, before: int) -> int:
        """Return how many events numbered under `before` are not settled."""
        return self._log.outstanding(self._cursor, before)

    @property
    def taken(self) -> int:
        """How many events the sink has taken."""
        return self._cursor.delivered + self._cursor.kept

    def crowded(self, patience: float) -> bool:
        """Tell whether the queue is nearly full, and a sink that moves is emptying it.

        Args:
            patience: Seconds that a batch may take before the sink counts as one that does not move.
        """
        since = self._writer.busy_since
        stuck = self._writer.down or (since is not None and _clock.monotonic() - since > patience)
        return not stuck and self._log.fullness(self._cursor) > _NEARLY_FULL

    def give_up(self, reason: str) -> None:
        """Drop what has not been taken, and count it.

        Where a signal handler asks for it in the middle of a delivery in line, that delivery's end does it.
        """
        if self._drainer != threading.get_ident():
            self._supply.drop(reason)

    def ledger(self) -> SinkLedger:
        """Return the sink's ledger."""
        return SinkLedger(
            accepted=self._log.accepted,
            delivered=self._cursor.delivered,
            failed=self._cursor.failed,
            dropped=self._log.dropped(self._cursor),
            pending=self._log.pending(self._cursor),
            last_error=self._writer.last_error,
            down=self._writer.down or (self._patience.over and self._cursor.in_flight > 0),
            worker_failures=self._failures,
        )

    def follow(self, earlier: Worker) -> None:
        """Use the sink only once an earlier worker, which has it too, has ended: no two of its calls run at once."""
        self._earlier = earlier
        self._using_sink = earlier._using_sink

    # -- the thread -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a thread unless there is one, or will be. The log's lock must not be held.

        Raises:
            RuntimeError: The interpreter is shutting down, or the system has no more threads.
        """
        with self._log.lock:
            if self.ended or self.present or self._thread is threading.current_thread():
                return
            thread = threading.Thread(target=self._run, name=f"spanforge {self.name}", daemon=True)
            self._thread, self._starter = thread, threading.get_ident()
        started = False
        try:
            thread.start()
            started = True
        finally:
            self._was_started(thread, started=started)

    def _was_started(self, thread: threading.Thread, *, started: bool) -> None:
        with self._log.lock:
            if self._thread is thread:
                self._starter = _NOBODY
                if not started:
                    # An interrupt may have come after the thread did: it finds then that it is not wanted.
                    self._thread = None
                    self._log.changed.notify_all()

    def _run(self) -> None:
        """Deliver until the stop. Whatever is raised, the thread goes on; if it cannot, another takes its place."""
        try:
            while self._wanted() and (error := attempt(self._work)) is not None:
                self._failed(error)
        finally:
            if self._wanted():
                self._thread, self._drainer = None, _NOBODY
                attempt(self.start)

    def _wanted(self) -> bool:
        return not self.ended and self._thread is threading.current_thread()

    def _failed(self, error: BaseException) -> None:
        """Take note of a failure that is our own, and not the sink's; let the trouble pass, memory come back."""
        self._failures += 1
        self._writer.note(error)
        self._patience.pause(_AFTER_A_FAILURE_S)

    def _work(self) -> None:
        while self._earlier is not None and not self._patience.over:
            if self._earlier.has_ended(_clock.monotonic() + _EARLIER_S):
                self._earlier = None
        while self._wanted() and self._wait_for_work():
            with self._using_sink:
                while self._drain():
                    pass
        if self._wanted():
            with self._using_sink:
                self._end()

    def has_ended(self, deadline: float) -> bool:
        """Wait, at most until `deadline`, for this worker and those it follows to end. The lock must not be held."""
        with self._log.lock:
            while self.present and (left := deadline - _clock.monotonic()) > 0:
                self._log.changed.wait(left)
            if self.present:
                return False
        return self._earlier is None or self._earlier.has_ended(deadline)

    def _wait_for_work(self) -> bool:
        """Wait until there is a batch worth writing; False when it is time to end."""
        log = self._log
        while True:
            with log.lock:
                if self._supply.waiting(_clock.monotonic(), everything=self._patience.in_a_hurry):
                    break
                if self._patience.stopping:
                    return False
                self._sleep()
            with self._using_sink:
                self._writer.ask(self.sink.idle)
            attempt(self._on_idle)
        self._linger()
        return True

    def _sleep(self) -> None:
        log = self._log
        log.sleepers += 1
        try:
            log.changed.wait(_IDLE_S)
        finally:
            log.sleepers -= 1

    def _linger(self) -> None:
        """Give the batch time to fill."""
        log = self._log
        until = _clock.monotonic() + self._policy.batch_delay_s
        with log.lock:
            while not self._patience.in_a_hurry and log.waiting(self._cursor) < self._policy.batch_events:
                left = until - _clock.monotonic()
                if left <= 0:
                    return
                log.changed.wait(left)

    # -- the sink, which one thread uses at a time ------------------------------------------------------------------

    def deliver_in_line(self, timeout: float) -> bool:
        """Deliver what waits from the calling thread; False if another used the sink for all of `timeout` seconds.

        The log's lock must not be held. The other is left what waits then: it delivers once more before it goes.
        """
        if self._drainer == threading.get_ident():
            # A sink that traces comes here from its own write: the outer loop takes what it adds.
            return True
        # A sink that hangs costs that time once, not with every event.
        done = self._in_turn(0.0 if self._hung else timeout, self._drain_in_line)
        self._hung = not done and (self._hung or timeout > 0)
        return done

    def end_in_line(self, deadline: float) -> None:
        """Deliver what can be until the time to stop, and close the sink, from the calling thread.

        Where the sink is in the middle of a write, whoever writes closes it afterwards: another thread, or this one,
        where a signal handler ends the SDK. The log's lock must not be held.
        """
        self._close_due = True
        if self._drainer != threading.get_ident():
            self._in_turn(min(self._patience.left_to_stop, deadline - _clock.monotonic()), self._end)

    def _end(self) -> None:
        """Close the sink, once; what came too late to be delivered, or what an interrupted write left, is dropped."""
        self._close_due = False
        if self.ended:
            return
        while not self._patience.over and self._drain(in_line=True):
            pass
        with self._log.lock:
            self.give_up("shutdown")
        self._writer.ask(self.sink.close)
        with self._log.lock:
            self.ended = True
            self._log.changed.notify_all()

    def _drain_in_line(self) -> None:
        for _ in range(_ROUNDS):
            with self._log.lock:
                target = self._log.tail
            while self._drain(in_line=True) and self._owes(target):
                pass

    def _owes(self, before: int) -> bool:
        with self._log.lock:
            return self.outstanding(before) > 0

    def _drain(self, *, in_line: bool = False) -> bool:
        """Write one batch; False where nothing waits."""
        try:
            self._drainer = threading.get_ident()
            return self._writer.batch(in_line=in_line)
        finally:
            self._drainer = _NOBODY
            if self._close_due:
                self._end()

    def _in_turn(self, timeout: float, action: Callable[[], None]) -> bool:
        """Run `action` while no other thread uses the sink; False if another did for all of `timeout` seconds."""
        try:
            if not self._has_turn(timeout):
                return False
            action()
            return True
        finally:
            # Whatever `_has_turn` said: an interrupt may have come after it took the lock and before it could say so.
            try:  # noqa: SIM105  `suppress` is a call, after which an interrupt may come
                self._using_sink.release()
            except RuntimeError:
                pass

    def _has_turn(self, timeout: float) -> bool:
        """Acquire the sink, within `timeout` seconds."""
        until = _clock.monotonic() + timeout
        while not self._using_sink.acquire(timeout=max(0.0, min(_TURN_S, until - _clock.monotonic()))):
            if _clock.monotonic() >= until:
                return False
            # Under a signal handler this thread may hold the log's lock, for which the sink's user waits: let it go.
            with self._log.lock:
                self._log.changed.wait(_LET_GO_S)
        return True
