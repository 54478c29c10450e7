"""One sink's worker: takes batches, retries with back-off, isolates what the sink refuses, rests when it is down."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from spanforge import _clock
from spanforge._text import class_name
from spanforge.delivery.guard import attempt, warn
from spanforge.delivery.ledger import SinkLedger
from spanforge.delivery.queue import Cursor, EventLog, whole, writing
from spanforge.delivery.supply import GatheredSupply, Supply
from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks.base import Receipt, Sink

__all__ = ["DeliveryPolicy", "Worker"]

_NOBODY: Final = 0
"""No thread has this for its ident."""
_IDLE_S: Final = 1.0
_REPORT_EVERY_S: Final = 60.0
_FIRST_REST_S: Final = 1.0
_PROBE_EVERY_S: Final = 0.2
_TURN_S: Final = 0.005
_LET_GO_S: Final = 0.001
_GIVE_UP_AFTER: Final = 3
"""Events refused one after the other, none accepted between, after which a sink counts as down."""
_TRIED_BEHIND: Final = 4
"""Events behind one that may be to blame that are tried before it is said to be."""


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """How hard a worker tries (fields as in `spanforge.config.Settings`)."""

    source: str
    batch_events: int = 512
    batch_delay_s: float = 0.1
    max_attempts: int = 4
    backoff_s: float = 0.05
    max_backoff_s: float = 30.0


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
        self._log = log
        self._policy = policy
        self._on_idle = on_idle
        self._cursor = Cursor()
        log.cursors.append(self._cursor)
        kind = GatheredSupply if getattr(sink, "whole_sessions", False) else Supply
        self._supply = kind(log, self._cursor, policy.source)
        self._thread: threading.Thread | None = None
        self._ended = False
        self._earlier: Worker | None = None
        # Held while the sink is in use, by the thread or by a caller that delivers in line.
        self._using_sink = threading.RLock()
        self._drainer = _NOBODY
        self._close_due = False
        self._hung = False
        self._hurry = 0
        self._stop_by: float | None = None
        self._down_until = 0.0
        self._rest_s = _FIRST_REST_S
        self._refused_probes = 0
        self._last_error = ""
        self._reported_at = -_REPORT_EVERY_S

    # -- what the dispatcher asks -------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: The interpreter is shutting down, or the system has no more threads.
        """
        thread = threading.Thread(target=self._run, name=f"spanforge {self.name}", daemon=True)
        thread.start()
        self._thread = thread

    @property
    def has_thread(self) -> bool:
        """Tell whether a thread of its own delivers, or did."""
        return self._thread is not None

    def is_current(self) -> bool:
        """Tell whether the calling thread is the one that delivers, so that it would wait for itself."""
        return self._thread is threading.current_thread() or self._drainer == threading.get_ident()

    def hurry(self, *, on: bool) -> None:
        """Skip the wait for company, and try a sink that rests, while somebody waits for a flush."""
        self._hurry += 1 if on else -1

    def stop(self, deadline: float) -> None:
        """Ask the thread to deliver what it can until `deadline` (monotonic seconds), then end."""
        self._stop_by = deadline

    @property
    def at_work(self) -> bool:
        """Tell whether a thread, another than the calling one, has not come to its end."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return False
        return not self._ended and thread.is_alive()

    def join(self, deadline: float) -> bool:
        """Wait for the thread to end; True if it did."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(max(0.0, deadline - _clock.monotonic()))
        return not thread.is_alive()

    def outstanding(self, before: int) -> int:
        """Return how many events numbered under `before` are not settled. The log's lock must be held."""
        return self._log.outstanding(self._cursor, before)

    def give_up(self, reason: str) -> None:
        """Drop what has not been taken, and count it. The log's lock must be held.

        Where a signal handler asks for it in the middle of a delivery in line, that delivery's end does it.
        """
        if self._drainer != threading.get_ident():
            self._supply.drop(reason)

    def close_in_line(self) -> None:
        """Close the sink from the calling thread; drop, and count, what an interrupted write left.

        Where the sink is in the middle of a write, whoever writes closes it afterwards: another thread, or this one,
        where a signal handler ends the SDK.
        """
        self._close_due = True
        if self._drainer != threading.get_ident():
            self._in_turn(0.0 if self._stop_by is None else self._stop_by - _clock.monotonic(), self._close)

    def _close(self) -> None:
        self._close_due = False
        with self._log.lock:
            self.give_up("shutdown")
        self._ask(self.sink.close)

    def ledger(self) -> SinkLedger:
        """Return the sink's ledger. The log's lock must be held."""
        return SinkLedger(
            accepted=self._log.accepted,
            delivered=self._cursor.delivered,
            failed=self._cursor.failed,
            dropped=self._log.dropped(self._cursor),
            pending=self._log.pending(self._cursor),
            last_error=self._last_error,
            down=self._down_until > 0,
        )

    def follow(self, earlier: Worker) -> None:
        """Use the sink only once an earlier worker, which has it too, has ended: no two of its calls run at once."""
        self._earlier = earlier
        self._using_sink = earlier._using_sink

    def deliver_in_line(self, timeout: float) -> bool:
        """Deliver what waits from the calling thread; False if another used the sink for all of `timeout` seconds."""
        if self._drainer == threading.get_ident():
            # A sink that traces comes here from its own write: the outer loop takes what it adds.
            return True
        # A sink that hangs costs that time once, not with every event.
        done = self._in_turn(0.0 if self._hung else timeout, lambda: self._drain(in_line=True))
        self._hung = not done and (self._hung or timeout > 0)
        return done

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

    # -- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._earlier is not None and not self._past_stop():
            if self._earlier.join(_clock.monotonic() + _PROBE_EVERY_S):
                self._earlier = None
        while self._wait_for_work():
            with self._using_sink:
                self._drain(in_line=False)
        with self._using_sink:
            self._ask(self.sink.close)
        with self._log.lock:
            self._ended = True
            self._log.changed.notify_all()

    def _wait_for_work(self) -> bool:
        """Wait until there is a batch worth writing; False when it is time to end."""
        log = self._log
        while True:
            with log.lock:
                if self._supply.waiting(_clock.monotonic(), everything=self._everything()):
                    break
                if self._stop_by is not None:
                    return False
                log.sleepers += 1
                log.changed.wait(_IDLE_S)
                log.sleepers -= 1
            with self._using_sink:
                self._ask(self.sink.idle)
            attempt(self._on_idle)
        self._linger()
        return True

    def _linger(self) -> None:
        """Give the batch time to fill."""
        log = self._log
        until = _clock.monotonic() + self._policy.batch_delay_s
        with log.lock:
            while not self._everything() and log.waiting(self._cursor) < self._policy.batch_events:
                left = until - _clock.monotonic()
                if left <= 0:
                    return
                log.changed.wait(left)

    def _drain(self, *, in_line: bool) -> None:
        """Write batches until nothing waits, or until the time to stop has come."""
        log, events = self._log, list[Event]()
        self._drainer = threading.get_ident()
        try:
            while True:
                probing = self._rest(in_line=in_line)
                with log.lock:
                    if self._past_stop():
                        self._supply.drop("shutdown")
                limit = 1 if probing else self._policy.batch_events
                now, everything = _clock.monotonic(), in_line or self._everything()
                events = self._supply.take(limit, now, everything=everything)
                with log.lock:
                    more = bool(events) or self._supply.waiting(now, everything=everything)
                if events:
                    self._deliver(events, probing=probing, in_line=in_line)
                elif not more:
                    return
        finally:
            self._drainer = _NOBODY
            if left := self._cursor.in_flight:
                # Only where the application is interrupted while it delivers in line: nobody knows what was written.
                with log.lock:
                    self._supply.put_back(events[-left:])
            if self._close_due:
                self._close()

    def _deliver(self, events: list[Event], *, probing: bool, in_line: bool) -> None:
        tries = 0
        while events:
            error = self._write(events)
            if error is None:
                return
            events = self._settle_front(events, error)
            tries += 1
            if probing:
                self._probe_failed(events)
                return
            final = in_line or tries >= self._policy.max_attempts or not getattr(error, "retryable", True)
            if final or not self._pause(self._back_off(error, tries)):
                self._one_by_one(events, keep=_may_pass(error) and not in_line and self._stop_by is None)
                return

    def _write(self, events: list[Event]) -> BaseException | None:
        """Write a batch; settle it where that succeeds, and return the error where it does not."""
        receipts: list[object] = []
        # A copy: what a sink does to its batch is its own affair.
        batch = tuple(events)
        writing.set(True)
        try:
            error = attempt(lambda: receipts.append(self.sink.write(batch)))
        finally:
            writing.set(False)
        if error is None:
            self._refused_probes, self._rest_s, self._down_until = 0, _FIRST_REST_S, 0.0
            with self._log.lock:
                if isinstance(receipts[0], Receipt):
                    self._log.keep(self._cursor, len(events))
                    self._log.settle_kept(self._cursor, receipts[0])
                else:
                    # None, or what a sink returns by habit, such as the length of what it wrote.
                    self._log.settle(self._cursor, delivered=len(events))
        return error

    def _ask(self, action: Callable[[], object]) -> None:
        """Let the sink do something other than write, and take note of what it says."""
        receipts: list[object] = []
        self._note(attempt(lambda: receipts.append(action())))
        if receipts and isinstance(receipts[0], Receipt):
            with self._log.lock:
                self._log.settle_kept(self._cursor, receipts[0])

    def _back_off(self, error: BaseException, tries: int) -> float:
        """Return the seconds to wait before the next try: ours, or the receiver's where that is longer."""
        asked = error.retry_after_s if isinstance(error, SinkWriteError) else None
        wanted = float(asked) if isinstance(asked, (int, float)) and asked > 0 else 0.0
        return min(max(wanted, self._policy.backoff_s * 2 ** (tries - 1)), self._policy.max_backoff_s)

    def _settle_front(self, events: list[Event], error: BaseException) -> list[Event]:
        """Count what a partly written batch did write; return the rest."""
        self._note(error)
        written = min(whole(error.delivered), len(events)) if isinstance(error, SinkWriteError) else 0
        if written:
            with self._log.lock:
                self._log.settle(self._cursor, delivered=written)
        return events[written:]

    def _one_by_one(self, events: list[Event], *, keep: bool, tried: int = _GIVE_UP_AFTER) -> None:
        """Find the events a sink refuses, so that their batch-mates are delivered.

        Args:
            events: What is left of a batch that was refused as a whole.
            keep: Let them wait, where the trouble turns out to be the sink's and not theirs.
            tried: How many of them are refused, none accepted, before that is so.
        """
        log, refused, any_accepted = self._log, 0, False
        for done, event in enumerate(events):
            if self._past_stop():
                with log.lock:
                    log.settle(self._cursor, failed=refused, dropped=len(events) - done, reason="shutdown")
                return
            # A batch of one has had its tries.
            accepted = len(events) > 1 and self._accepts(event)
            any_accepted |= accepted
            refused += not accepted
            if any_accepted and refused:
                with log.lock:
                    log.settle(self._cursor, failed=refused)
                refused = 0
            elif not any_accepted and refused >= min(tried, len(events)):
                with log.lock:
                    if keep:
                        self._supply.put_back(events)
                    else:
                        log.settle(self._cursor, failed=len(events))
                self._go_down()
                return

    def _accepts(self, event: Event) -> bool:
        """Write one event by itself; a sink may fail after it has written it, and say so."""
        error = self._write([event])
        return error is None or not self._settle_front([event], error)

    # -- a sink that is down ------------------------------------------------------------------------------------

    def _go_down(self) -> None:
        """Open the circuit: leave the sink alone for a while, longer each time."""
        self._down_until = _clock.monotonic() + self._rest_s
        self._rest_s = min(self._rest_s * 2, max(self._policy.max_backoff_s, _FIRST_REST_S))

    def _probe_failed(self, events: list[Event]) -> None:
        """Leave what a probe could not write for the next; after several, see whether the sink takes what is behind it.

        It is to blame then, and the sink was never down; otherwise it is not, however long the sink is away.
        """
        self._refused_probes += 1
        with self._log.lock:
            self._supply.put_back(events)
        if self._refused_probes < self._policy.max_attempts:
            self._go_down()
            return
        self._refused_probes = 0
        more = self._supply.take(len(events) + _TRIED_BEHIND, _clock.monotonic(), everything=self._everything())
        self._one_by_one(more, keep=True, tried=len(more))

    def _rest(self, *, in_line: bool) -> bool:
        """Wait while the circuit is open; True where the next write is a probe of a sink that was down."""
        if not self._down_until:
            return False
        while not in_line and (left := self._down_until - _clock.monotonic()) > 0 and not self._past_stop():
            self._pause(min(left, _PROBE_EVERY_S))
            if self._everything():
                break
        return not in_line

    def _pause(self, seconds: float) -> bool:
        """Wait, but not past the time to stop; False when that has come."""
        until = _clock.monotonic() + seconds
        log = self._log
        with log.lock:
            while (left := until - _clock.monotonic()) > 0:
                if self._past_stop():
                    return False
                if self._stop_by is not None:
                    left = min(left, max(0.0, self._stop_by - _clock.monotonic()))
                log.changed.wait(left)
        return not self._past_stop()

    def _everything(self) -> bool:
        """Tell whether somebody waits for the queue to be empty."""
        return self._hurry > 0 or self._stop_by is not None

    def _past_stop(self) -> bool:
        return self._stop_by is not None and _clock.monotonic() >= self._stop_by

    def _note(self, error: BaseException | None) -> None:
        """Remember an error's class or code, and say so at most once a minute."""
        if error is None:
            return
        self._last_error = str(error.reason) if isinstance(error, SinkWriteError) else class_name(type(error))
        now = _clock.monotonic()
        if now - self._reported_at >= _REPORT_EVERY_S:
            self._reported_at = now
            warn("spanforge sink %s: %s; get_status() has the counts", self.name, self._last_error)


def _may_pass(error: BaseException) -> bool:
    """Tell whether an error is one of the world around a sink, which may be over later, and not one of its code."""
    return isinstance(error, OSError) and bool(getattr(error, "retryable", True))
