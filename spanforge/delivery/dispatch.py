"""The dispatcher: one log, the workers that read it, their life from first event to last, the waits for them."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from spanforge import _clock
from spanforge._guard import attempt
from spanforge._warnings import warn
from spanforge.delivery import process
from spanforge.delivery.ledger import DeliveryReceipt, SinkLedger, losses
from spanforge.delivery.lifecycle import Lifecycle, Phase
from spanforge.delivery.queue import EventLog
from spanforge.delivery.worker import Worker
from spanforge.delivery.writer import DeliveryPolicy
from spanforge.sinks.base import Sink

__all__ = ["Dispatcher"]

_OTHERS_S: Final = 0.5
"""How long a caller that delivers in line waits for another that uses the sink. It may wait for this very caller."""
_LOOK_S: Final = 0.02
_LAST_STEPS_S: Final = 0.05
_FAILED: Final = "failed"
_SHUTDOWN: Final = "shutdown"


class Dispatcher:
    """Delivers events to sinks, from worker threads or in the caller's.

    Args:
        sinks: Where events go.
        policy: How hard to try.
        max_events: Events that may wait for the slowest sink.
        max_bytes: Estimated bytes that may wait, likewise.
        lock: The owner's, where it has more to guard than this.
        in_line: Deliver in the thread that emits, before `emitted` returns.
        on_idle: Called about once a second from a worker's thread.
        on_start: Called in the first emitting thread, before the workers start.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        policy: DeliveryPolicy,
        *,
        max_events: int,
        max_bytes: int,
        lock: threading.RLock | None = None,
        in_line: bool = False,
        on_idle: Callable[[], None] = lambda: None,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        self.log = EventLog(max_events, max_bytes, lock)
        self._workers = [Worker(sink, self.log, policy, on_idle) for sink in sinks]
        self._on_start = on_start
        self._life = Lifecycle()
        self._in_line = in_line
        self._told: Counter[str] = Counter()

    @property
    def sinks(self) -> list[Sink]:
        """The sinks, in order."""
        return [worker.sink for worker in self._workers]

    @property
    def closed(self) -> bool:
        """True once `close` was called: events are then dropped and counted."""
        return self.log.closed

    # -- from the first event on --------------------------------------------------------------------------------

    def emitted(self) -> None:
        """See to it that somebody delivers what the log accepted: start the workers, or deliver in line.

        The log's lock must not be held.
        """
        if self._life.phase is not Phase.RUNNING:
            self._start()
        if self._in_line and not self.log.closed:
            for worker in self._workers:
                worker.deliver_in_line(_OTHERS_S)

    def _start(self) -> None:
        """Give each worker that has none a thread, once there is something to deliver, or decide to deliver in line."""
        if self.log.closed or not self.log.accepted:
            return
        with self.log.lock:
            if self._life.advance(Phase.STARTING):
                self._on_start()
            if self._life.phase is Phase.STARTING and not process.may_start_threads():
                self._in_line = True
        for worker in self._workers:
            # Too late for a thread (the interpreter is going down), or none to be had: deliver in line.
            if not self._in_line and attempt(worker.start) is not None:
                self._in_line = True
        with self.log.lock:
            self._life.advance(Phase.RUNNING)

    def follow(self, earlier: Dispatcher) -> None:
        """Take turns with an earlier dispatcher, which is about to be closed, at the sinks that both have."""
        for worker in self._workers:
            for other in earlier._workers:
                if other.sink is worker.sink:
                    worker.follow(other)

    def crowded(self, patience: float) -> bool:
        """Tell whether to let workers catch up before more is emitted. The log's lock must be held.

        Args:
            patience: Seconds that a batch may take before its sink counts as stuck, and is not waited for.
        """
        return any(worker.crowded(patience) for worker in self._workers)

    # -- what became of it --------------------------------------------------------------------------------------

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

    def outstanding(self, before: int | None = None) -> int:
        """Return how many deliveries, of what is numbered under `before`, wait or are being made."""
        with self.log.lock:
            target = self.log.tail if before is None else before
            return sum(worker.outstanding(target) for worker in self._workers)

    def receipt(self, before: int | None = None) -> DeliveryReceipt:
        """Say what is outstanding, and what was lost since the last receipt."""
        with self.log.lock:
            pending = self.outstanding(before)
            seen: Counter[str] = Counter()
            for worker in self._workers:
                ledger = worker.ledger()
                seen.update(losses(ledger.dropped))
                seen[_FAILED] += ledger.failed
            new, self._told = seen - self._told, seen
        return DeliveryReceipt(pending, new.pop(_FAILED, 0), new)

    # -- waiting ------------------------------------------------------------------------------------------------

    def flush(self, timeout: float, stalled_s: float = math.inf) -> DeliveryReceipt:
        """Wait until what was emitted before is settled by every sink.

        Args:
            timeout: Seconds at most.
            stalled_s: Seconds at most in which no sink takes anything.
        """
        deadline, target = _clock.monotonic() + timeout, self._reached()
        before, until = -1, deadline
        with self.hurried():
            while not self._settled(target) and (left := until - _clock.monotonic()) > 0:
                with self.log.lock:
                    self.log.changed.wait(min(left, _LOOK_S))
                    if (taken := sum(worker.taken for worker in self._workers)) != before:
                        before, until = taken, min(deadline, _clock.monotonic() + stalled_s)
        return self.receipt(target)

    async def aflush(self, timeout: float) -> DeliveryReceipt:  # noqa: ASYNC109  the deadline is the promise; a cancel scope would raise
        """Do as `flush` does without blocking the event loop, and without a thread of its executor."""
        deadline, target = _clock.monotonic() + timeout, self._reached()
        pause = 0.001
        with self.hurried():
            while not self._settled(target) and (left := deadline - _clock.monotonic()) > 0:
                await asyncio.sleep(min(pause, left))
                pause = min(pause * 2, 0.05)
        return self.receipt(target)

    def _reached(self) -> int:
        self._start()
        with self.log.lock:
            return self.log.tail

    def _settled(self, target: int) -> bool:
        """Tell whether all sinks have settled what is numbered under `target`, or whether it is no use to wait."""
        if any(worker.is_current() for worker in self._workers):
            return True
        if self._in_line:
            for worker in self._workers:
                worker.deliver_in_line(0.0)
        with self.log.lock:
            return not any(worker.outstanding(target) for worker in self._workers)

    @contextmanager
    def hurried(self) -> Generator[None]:
        """Let no worker wait for company, nor a sink rest, meanwhile."""
        self._hurry(on=True)
        try:
            yield
        finally:
            self._hurry(on=False)

    def _hurry(self, *, on: bool) -> None:
        with self.log.lock:
            for worker in self._workers:
                worker.hurry(on=on)
            self.log.changed.notify_all()

    # -- ending -------------------------------------------------------------------------------------------------

    def leave(self, timeout: float) -> None:
        """Let the workers deliver what they can in `timeout` seconds and end, without waiting for them."""
        deadline = _clock.monotonic() + timeout
        self._start()
        self._stop(deadline)
        self._end_in_line(deadline)

    def close(self, timeout: float) -> None:
        """Deliver what can be in `timeout` seconds, end the workers, close the sinks; what is left is counted."""
        deadline = _clock.monotonic() + timeout
        self._start()
        first = self._stop(deadline)
        # A worker stops by itself at the deadline; the margin is for its last steps, not for a hung sink.
        while not self._end_in_line(deadline) and (left := deadline + _LAST_STEPS_S - _clock.monotonic()) > 0:
            with self.log.lock:
                # This lets go of the lock, which a thread may hold under its signal handler.
                self.log.changed.wait(min(left, _LOOK_S))
        if first:
            self._closed()

    def _stop(self, deadline: float) -> bool:
        """Take nothing any more; False where that was so before, and the deadline is the one of then."""
        with self.log.lock:
            first = self._life.advance(Phase.STOPPING)
            if first:
                self.log.closed = True
                for worker in self._workers:
                    worker.stop(deadline)
                self.log.changed.notify_all()
            return first

    def _end_in_line(self, deadline: float) -> bool:
        """End the workers that have no thread, or have it no more; True where no other is left to be waited for."""
        for worker in self._workers:
            if not worker.ended and not worker.present:
                worker.end_in_line(deadline)
        return all(worker.ended or worker.is_current() for worker in self._workers)

    def _closed(self) -> None:
        with self.log.lock:
            for worker in self._workers:
                worker.give_up(_SHUTDOWN)
            self._life.advance(Phase.CLOSED)
        if lost := sum(ledger.lost for ledger in self.ledgers().values()):
            warn("spanforge closed with %d deliveries lost; get_status() has the counts", lost)

    def exit(self, timeout: float, stalled_s: float) -> None:
        """Deliver what can be before the process ends, as `flush` does."""
        receipt = self.flush(timeout, stalled_s)
        if given_up := receipt.dropped.get(_SHUTDOWN):
            warn("spanforge: the process ends with %d deliveries given up", given_up)
        # More than the flush may have left: a sink that keeps events has not delivered them yet.
        if pending := sum(ledger.pending for ledger in self.ledgers().values()):
            warn("spanforge: the process ends with %d deliveries pending", pending)

    def deliver_in_line(self) -> None:
        """Deliver in the emitting thread from here on: soon no other will run."""
        self._in_line = True

    def forked(self) -> None:
        """Know that this is the copy of a child, where all that waits is the parent's, and the lock anybody's."""
        self._life.advance(Phase.FORKED)
        self.log.closed = True
        for worker in self._workers:
            worker.stop(0.0)
