"""The dispatcher at work, and those of earlier configurations that still have something to deliver."""

from __future__ import annotations

import math
import threading

from spanforge import _clock
from spanforge.delivery.dispatch import Dispatcher
from spanforge.delivery.ledger import DeliveryReceipt, SinkLedger
from spanforge.delivery.replaced import Replaced
from spanforge.metrics.meter import PointLedger

__all__ = ["Dispatchers", "left"]


class Dispatchers:
    """Flushes, closes and accounts for what a client emitted, under whichever configuration.

    Args:
        lock: The client's one lock.
        current: The dispatcher that is at work first.
    """

    def __init__(self, lock: threading.RLock, current: Dispatcher) -> None:
        self._lock = lock
        self._current = current
        self._leaving: list[Dispatcher] = []
        self._replaced = Replaced()

    def use(self, new: Dispatcher) -> None:
        """Put another dispatcher to work; the one before is leaving until it is retired."""
        with self._lock:
            self._leaving.append(self._current)
            self._current = new

    def retire(self, old: Dispatcher, timeout: float) -> None:
        """Close the dispatcher of an earlier configuration; receipts and ledgers say what it has not delivered."""
        try:
            old.close(timeout)
        finally:
            with self._lock:
                self._leaving.remove(old)
                self._replaced.add(old)

    def flush(self, timeout: float, stalled_s: float = math.inf) -> DeliveryReceipt:
        """Wait for what was emitted, under this configuration or one that is being replaced.

        What the sinks of earlier ones still hold is not waited for, and is in the receipt.
        """
        deadline = _clock.monotonic() + timeout
        return self._receipt([one.flush(left(deadline), stalled_s) for one in self._all()])

    async def aflush(self, timeout: float) -> DeliveryReceipt:  # noqa: ASYNC109  as in `Dispatcher.aflush`
        """Do as `flush` does without blocking the event loop."""
        deadline = _clock.monotonic() + timeout
        return self._receipt([await one.aflush(left(deadline)) for one in self._all()])

    def close(self, deadline: float) -> DeliveryReceipt:
        """Deliver and close the sinks until a time of the monotonic clock."""
        dispatchers = self._all()
        for one in dispatchers:
            one.close(left(deadline))
        return self._receipt([one.receipt() for one in dispatchers])

    def ledgers(self) -> dict[str, SinkLedger]:
        """Return the ledgers of the sinks by name, and of those replaced that have lost events or hold some."""
        with self._lock:
            return {**self._current.ledgers(), **self._replaced.ledgers(self._leaving)}

    def metric_ledgers(self) -> dict[str, PointLedger]:
        """Return the ledgers of metric points of the sinks that send metrics, by name."""
        found = ((sink.name, getattr(sink, "metric_points", None)) for sink in self._current.sinks)
        return {name: ledger for name, ledger in found if ledger is not None}

    def _all(self) -> list[Dispatcher]:
        with self._lock:
            return [*self._leaving, self._current]

    def _receipt(self, receipts: list[DeliveryReceipt]) -> DeliveryReceipt:
        with self._lock:
            return DeliveryReceipt.sum([*receipts, self._replaced.receipt()])


def left(deadline: float) -> float:
    """Return the seconds until a time of the monotonic clock, or zero."""
    return max(0.0, deadline - _clock.monotonic())
