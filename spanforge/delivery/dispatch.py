"""The dispatcher: one log, the workers that read it, and the ways to wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal

from spanforge import _clock
from spanforge.delivery import lifecycle
from spanforge.delivery.guard import attempt, warn
from spanforge.delivery.ledger import SinkLedger
from spanforge.delivery.queue import EventLog
from spanforge.delivery.worker import DeliveryPolicy, Worker
from spanforge.sinks.base import Sink

__all__ = ["Dispatcher"]

_NO_LIMIT: Final = 3600.0
_AFTER_EXIT_S: Final = 0.5
_SHUTDOWN: Final = "shutdown"


class Dispatcher:
    """Delivers events to sinks, from worker threads or in the caller's.

    Args:
        sinks: Where events go.
        policy: How hard to try.
        max_events: Events that may wait for the slowest sink.
        max_bytes: Estimated bytes that may wait, likewise.
        in_line: Deliver in the thread that emits, before `emitted` returns.
        on_idle: Called about once a second from a worker's thread.
        on_start: Called once, in the first emitting thread, before the workers start.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        policy: DeliveryPolicy,
        *,
        max_events: int,
        max_bytes: int,
        in_line: bool = False,
        on_idle: Callable[[], None] = lambda: None,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        self.log = EventLog(max_events, max_bytes)
        self._workers = [Worker(sink, self.log, policy, on_idle) for sink in sinks]
        self._on_start = on_start
        self._state: Literal["new", "threads", "in_line", "closed"] = "new"
        self._in_line = in_line
        self._wait_s = _NO_LIMIT

    @property
    def sinks(self) -> list[Sink]:
        """The sinks, in order."""
        return [worker.sink for worker in self._workers]

    @property
    def closed(self) -> bool:
        """True once `close` was called: events are then dropped and counted."""
        return self.log.closed

    def emitted(self) -> None:
        """See to it that somebody delivers what the log accepted: start the workers, or deliver in line.

        The log's lock must not be held.
        """
        if self._state in {"threads", "closed"}:
            return
        if self._state == "new":
            self._begin()
        if self._state == "in_line":
            for worker in self._workers:
                if not worker.deliver_in_line(self._wait_s):
                    with self.log.lock:
                        worker.give_up("sink_busy_at_exit")

    def _catch_up(self, timeout: float) -> None:
        """Do as `emitted` does, but give nothing up: a thread that uses a sink in line takes all that waits."""
        if self._state == "new":
            self._begin()
        if self._state == "in_line":
            deadline = _clock.monotonic() + timeout
            for worker in self._workers:
                worker.deliver_in_line(deadline - _clock.monotonic())

    def _begin(self) -> None:
        with self.log.lock:
            if self._state != "new" or not self.log.accepted:
                return
            self._on_start()
            self._state = "in_line" if self._in_line or lifecycle.hooks_were_ignored() else "threads"
            if lifecycle.is_ending():
                # Our own exit handler comes too late to be called, so nobody would wait for a thread.
                self._state, self._wait_s = "in_line", _AFTER_EXIT_S
        if self._state == "threads":
            for worker in self._workers:
                # Too late for a thread (the interpreter is going down), or none to be had: deliver in line.
                if attempt(worker.start) is not None:
                    self._state = "in_line"

    def follow(self, earlier: Dispatcher) -> None:
        """Take turns with an earlier dispatcher, which is about to be closed, at the sinks that both have."""
        for worker in self._workers:
            for other in earlier._workers:
                if other.sink is worker.sink:
                    worker.follow(other)

    def ledgers(self) -> dict[str, SinkLedger]:
        """Return every sink's ledger by name, all of the same instant."""
        with self.log.lock:
            named: dict[str, SinkLedger] = {}
            for worker in self._workers:
                name, twin = worker.name, 2
                while name in named:
                    name, twin = f"{worker.name}#{twin}", twin + 1
                named[name] = worker.ledger()
            return named

    # -- waiting ------------------------------------------------------------------------------------------------

    def flush(self, timeout: float) -> int:
        """Wait until what was emitted before is settled by every sink, at most `timeout` seconds.

        Returns:
            How many deliveries, summed over the sinks, are still pending.
        """
        if any(worker.is_current() for worker in self._workers):
            return self._left(self.log.tail)
        deadline = _clock.monotonic() + timeout
        self._catch_up(0)
        log = self.log
        with log.lock:
            target = log.tail
            self._hurry(on=True)
            try:
                while (left := self._left(target)) and (wait := deadline - _clock.monotonic()) > 0:
                    log.changed.wait(wait)
            finally:
                self._hurry(on=False)
            return left

    async def aflush(self, timeout: float) -> int:  # noqa: ASYNC109  the deadline is the promise; a cancel scope would raise
        """Do as `flush` does without blocking the event loop, and without a thread of its executor."""
        deadline = _clock.monotonic() + timeout
        self._catch_up(0)
        with self.log.lock:
            target = self.log.tail
            self._hurry(on=True)
        pause = 0.001
        try:
            while (left := self._left(target)) and (wait := deadline - _clock.monotonic()) > 0:
                await asyncio.sleep(min(pause, wait))
                pause = min(pause * 2, 0.05)
        finally:
            with self.log.lock:
                self._hurry(on=False)
        return left

    def _left(self, target: int) -> int:
        with self.log.lock:
            return sum(worker.outstanding(target) for worker in self._workers)

    def _hurry(self, *, on: bool) -> None:
        for worker in self._workers:
            worker.hurry(on=on)
        self.log.changed.notify_all()

    # -- ending -------------------------------------------------------------------------------------------------

    def leave(self, timeout: float) -> None:
        """Let the workers deliver what they can in `timeout` seconds and end, without waiting for them."""
        self._catch_up(timeout)
        self._stop(_clock.monotonic() + timeout)

    def _stop(self, deadline: float) -> None:
        with self.log.lock:
            self._state = "closed"
            self.log.closed = True
            for worker in self._workers:
                worker.stop(deadline)
            self.log.changed.notify_all()
        for worker in self._workers:
            # A thread closes its own sink; here it could only be waited for.
            if not worker.has_thread:
                worker.close_in_line()

    def close(self, timeout: float) -> int:
        """Deliver what can be in `timeout` seconds, end the workers, close the sinks; what is left is counted.

        Returns:
            How many deliveries were given up.
        """
        deadline = _clock.monotonic() + timeout
        self._catch_up(timeout)
        if self.log.closed:
            return 0
        before = self._given_up()
        self._stop(deadline)
        # A worker stops by itself at the deadline; the margin is for its last steps, not for a hung sink.
        latest = deadline + 0.05
        with self.log.lock:
            # This lets go of the lock, which a thread may hold under its signal handler; to join the workers would not.
            while any(worker.at_work for worker in self._workers) and (wait := latest - _clock.monotonic()) > 0:
                self.log.changed.wait(wait)
        for worker in self._workers:
            worker.join(latest)
        with self.log.lock:
            for worker in self._workers:
                worker.give_up(_SHUTDOWN)
        if lost := sum(ledger.lost for ledger in self.ledgers().values()):
            warn("spanforge closed with %d deliveries lost; get_status() has the counts", lost)
        return self._given_up() - before

    def _given_up(self) -> int:
        return sum(ledger.dropped.get(_SHUTDOWN, 0) for ledger in self.ledgers().values())

    def exit(self, timeout: float) -> None:
        """Deliver what can be before the process ends; whatever comes later is delivered at once, in line."""
        self.flush(timeout)
        # More than the flush may have left: a sink that keeps events has not delivered them yet.
        if pending := sum(ledger.pending for ledger in self.ledgers().values()):
            warn("spanforge: the process ends with %d deliveries pending", pending)
        with self.log.lock:
            if self._state == "threads":
                self._state = "in_line"
                self._wait_s = _AFTER_EXIT_S
