"""The ledger: for every sink, accepted = delivered + failed + dropped by reason + pending, exactly and always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self

__all__ = ["DeliveryReceipt", "SinkLedger"]

_NO_LOSS: Final = frozenset({"sampled", "log_level", "otel_unsampled", "otel_disabled", "reconfigured"})
"""Reasons for which events are dropped because somebody asked for it, or because they changed ledgers."""
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


def losses(dropped: Mapping[str, int]) -> dict[str, int]:
    """Return those of the dropped events, by reason, that nobody asked to have dropped."""
    return {reason: count for reason, count in dropped.items() if reason not in _NO_LOSS}


class DeliveryReceipt(int):
    """What `flush`, `aflush` and `shutdown` return: the number of deliveries that were not made, 0 where all were.

    Each event counts once for every sink it did not reach. What was dropped by sampling or for its log level was asked
    for, and does not count. A call that failed itself says 1 pending: it cannot know.

    Attributes:
        pending: Emitted before the call, and still waiting or being written.
        failed: Refused by a sink since the last receipt.
        dropped: Given up since the last receipt, by reason.
    """

    pending: int
    failed: int
    dropped: Mapping[str, int]

    def __new__(cls, pending: int = 0, failed: int = 0, dropped: Mapping[str, int] = _NONE) -> Self:
        """Make a receipt; its value is the sum of all it says."""
        receipt = super().__new__(cls, pending + failed + sum(dropped.values()))
        receipt.pending, receipt.failed, receipt.dropped = pending, failed, dropped
        return receipt

    @classmethod
    def sum(cls, receipts: Iterable[DeliveryReceipt]) -> Self:
        """Return what several receipts say together."""
        pending, failed, dropped = 0, 0, Counter[str]()
        for receipt in receipts:
            pending, failed = pending + receipt.pending, failed + receipt.failed
            dropped.update(receipt.dropped)
        return cls(pending, failed, dict(dropped))

    def __repr__(self) -> str:
        return f"DeliveryReceipt(pending={self.pending}, failed={self.failed}, dropped={dict(self.dropped)})"

    __str__ = int.__repr__


@dataclass(frozen=True, slots=True)
class SinkLedger:
    """What became of the events meant for one sink, at one instant.

    Attributes:
        accepted: Events the SDK took from the application.
        delivered: Events the sink wrote.
        failed: Events the sink refused, or could not write after every retry.
        dropped: Events given up before the sink was asked, by reason: `queue_full`, `sampled`, `shutdown` …
        pending: Events that still wait, are being written, or are held back by sampling.
        last_error: Class or code of the sink's last error; empty if it never failed.
        down: The sink refused several events in a row, and is left alone until it takes one again; or it was still
            writing when its time was over.
        worker_failures: How often its worker failed itself, out of memory for example, and went on.
    """

    accepted: int
    delivered: int
    failed: int
    dropped: Mapping[str, int]
    pending: int
    last_error: str = ""
    down: bool = False
    worker_failures: int = 0

    @property
    def lost(self) -> int:
        """Events that never will arrive, other than by sampling and log level, which were asked for."""
        return self.failed + sum(losses(self.dropped).values())

    @property
    def degraded(self) -> bool:
        """True where events were lost, or may be because the sink is down or its worker failed."""
        return self.down or self.lost > 0 or self.worker_failures > 0

    @property
    def balanced(self) -> bool:
        """True where the ledger adds up; it always is."""
        return self.accepted == self.delivered + self.failed + sum(self.dropped.values()) + self.pending

    def __add__(self, other: SinkLedger) -> SinkLedger:
        """Return what two ledgers come to; the later error is the other's."""
        return SinkLedger(
            accepted=self.accepted + other.accepted,
            delivered=self.delivered + other.delivered,
            failed=self.failed + other.failed,
            dropped=Counter(self.dropped) + Counter(other.dropped),
            pending=self.pending + other.pending,
            last_error=other.last_error or self.last_error,
            down=self.down or other.down,
            worker_failures=self.worker_failures + other.worker_failures,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the figures as a plain dict."""
        return {
            "accepted": self.accepted,
            "delivered": self.delivered,
            "failed": self.failed,
            "dropped": dict(self.dropped),
            "pending": self.pending,
            "last_error": self.last_error,
        }
