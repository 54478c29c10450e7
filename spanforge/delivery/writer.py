"""Writes to one sink: retries with back-off, isolates what the sink refuses, leaves it alone while it is down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from spanforge import _clock
from spanforge._guard import attempt
from spanforge._text import class_name
from spanforge._warnings import warn
from spanforge.delivery.patience import Patience
from spanforge.delivery.queue import Cursor, EventLog, whole, writing
from spanforge.delivery.supply import Supply
from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks.base import Receipt, Sink

__all__ = ["DeliveryPolicy", "Writer"]

_REPORT_EVERY_S: Final = 60.0
_FIRST_REST_S: Final = 1.0
_PROBE_EVERY_S: Final = 0.2
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


class Writer:
    """What is known of one sink, and what is done about it. Used by one thread at a time.

    Args:
        sink: Where to.
        log: Where from.
        cursor: The sink's place in the log.
        supply: What takes events out of the log.
        policy: How hard to try.
        patience: How long to wait.

    Attributes:
        busy_since: When the batch that is being written was taken (monotonic seconds); None between batches.
        last_error: Class or code of the last error; empty if there was none.
    """

    def __init__(
        self,
        sink: Sink,
        log: EventLog,
        cursor: Cursor,
        *,
        supply: Supply,
        policy: DeliveryPolicy,
        patience: Patience,
    ) -> None:
        self._sink = sink
        self._log = log
        self._cursor = cursor
        self._supply = supply
        self._policy = policy
        self._patience = patience
        self._taken: list[Event] = []
        self._down_until = 0.0
        self._rest_s = _FIRST_REST_S
        self._asked_until = 0.0
        self._refused_probes = 0
        self._reported_at = -_REPORT_EVERY_S
        self.busy_since: float | None = None
        self.last_error = ""

    @property
    def down(self) -> bool:
        """True from several refusals in a row until the sink takes an event again."""
        return self._down_until > 0

    def batch(self, *, in_line: bool) -> bool:
        """Write the next batch; False where nothing waits.

        Args:
            in_line: The caller is the application, which waits: try once, and everything there is.
        """
        log = self._log
        probing = self._rest(in_line=in_line)
        with log.lock:
            if self._patience.over:
                self._supply.drop("shutdown")
        limit = 1 if probing else self._policy.batch_events
        now, everything = _clock.monotonic(), in_line or self._patience.in_a_hurry
        try:
            self.busy_since = now
            events = self._take(limit, now, everything=everything)
            with log.lock:
                more = bool(events) or self._supply.waiting(now, everything=everything) > 0
            if events:
                self._deliver(events, probing=probing, in_line=in_line)
            return more
        finally:
            self.busy_since = None
            if left := self._cursor.in_flight:
                # Only where something else than the sink failed or was interrupted: nobody knows what was written.
                with log.lock:
                    self._supply.put_back(self._taken[-left:])

    def _take(self, limit: int, now: float, *, everything: bool) -> list[Event]:
        self._taken = self._supply.take(limit, now, everything=everything)
        return self._taken

    def ask(self, action: Callable[[], object]) -> None:
        """Let the sink do something other than write, and take note of what it says."""
        receipts: list[object] = []
        self.note(attempt(lambda: receipts.append(action())))
        if receipts and isinstance(receipts[0], Receipt):
            with self._log.lock:
                self._log.settle_kept(self._cursor, receipts[0])
            self._note_receipt(receipts[0])

    def _note_receipt(self, receipt: object) -> None:
        """Remember what a sink says went wrong with some of the events it settled."""
        said: list[object] = []
        if isinstance(receipt, Receipt):
            attempt(lambda: said.append(receipt.last_error))
        for reason in said:
            if isinstance(reason, str) and reason:
                self.note(SinkWriteError(reason))

    def note(self, error: BaseException | None) -> None:
        """Remember an error's class or code, and say so at most once a minute."""
        if error is None:
            return
        self.last_error = str(error.reason) if isinstance(error, SinkWriteError) else class_name(type(error))
        now = _clock.monotonic()
        if now - self._reported_at >= _REPORT_EVERY_S:
            self._reported_at = now
            warn("spanforge sink %s: %s; get_status() has the counts", self._sink.name, self.last_error)

    # -- one batch ----------------------------------------------------------------------------------------------

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
            if final or not self._patience.pause(self._back_off(error, tries)):
                self._one_by_one(events, keep=_may_pass(error) and not in_line and not self._patience.stopping)
                return

    def _write(self, events: list[Event]) -> BaseException | None:
        """Write a batch; settle it where that succeeds, and return the error where it does not."""
        receipts: list[object] = []
        # A copy: what a sink does to its batch is its own affair.
        batch = tuple(events)
        try:
            writing.set(True)
            error = attempt(lambda: receipts.append(self._sink.write(batch)))
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
            self._note_receipt(receipts[0])
        return error

    def _back_off(self, error: BaseException, tries: int) -> float:
        """Return the seconds to wait before the next try: ours, or the receiver's where that is longer."""
        return min(max(_asked(error), self._policy.backoff_s * 2 ** (tries - 1)), self._policy.max_backoff_s)

    def _settle_front(self, events: list[Event], error: BaseException) -> list[Event]:
        """Count what a partly written batch did settle; return the rest."""
        self.note(error)
        self._asked_until = _clock.monotonic() + min(_asked(error), self._policy.max_backoff_s)
        if not isinstance(error, SinkWriteError):
            return events
        rest = events
        with self._log.lock:
            for reason, count in [("", error.delivered), *error.dropped.items()]:
                settled = min(whole(count), len(rest))
                rest = rest[settled:]
                if reason:
                    self._log.settle(self._cursor, dropped=settled, reason=reason)
                elif settled:
                    self._log.settle(self._cursor, delivered=settled)
        return rest

    def _one_by_one(self, events: list[Event], *, keep: bool, tried: int = _GIVE_UP_AFTER) -> None:
        """Find the events a sink refuses, so that their batch-mates are delivered.

        Args:
            events: What is left of a batch that was refused as a whole.
            keep: Let them wait, where the trouble turns out to be the sink's and not theirs.
            tried: How many of them are refused, none accepted, before that is so.
        """
        log, refused, any_accepted = self._log, 0, False
        for done, event in enumerate(events):
            if self._patience.over:
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
        everything = self._patience.in_a_hurry
        more = self._take(len(events) + _TRIED_BEHIND, _clock.monotonic(), everything=everything)
        self._one_by_one(more, keep=True, tried=len(more))

    def _rest(self, *, in_line: bool) -> bool:
        """Wait while the circuit is open; True where the next write is a probe of a sink that was down."""
        if not self._down_until:
            return False
        while not in_line and (left := self._down_until - _clock.monotonic()) > 0 and not self._patience.over:
            if self._patience.in_a_hurry:
                # Sooner than it would rest, but not sooner each time, nor than the receiver asked for.
                asked = self._asked_until - _clock.monotonic()
                self._patience.pause(min(left, max(_PROBE_EVERY_S * self._patience.turn(), asked)))
                break
            self._patience.pause(min(left, _PROBE_EVERY_S))
        # Close to the end there is no later probe to leave it to.
        return not in_line and not self._patience.stopping


def _asked(error: BaseException) -> float:
    """Return the seconds a receiver asked to be left alone."""
    asked: object = error.retry_after_s if isinstance(error, SinkWriteError) else None
    return float(asked) if isinstance(asked, (int, float)) and asked > 0 else 0.0


def _may_pass(error: BaseException) -> bool:
    """Tell whether an error is one of the world around a sink, which may be over later, and not one of its code."""
    return isinstance(error, OSError) and bool(getattr(error, "retryable", True))
