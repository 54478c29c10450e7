"""The ledger: for every sink, accepted = delivered + failed + dropped by reason + pending, exactly and always."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["SinkLedger"]


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
        down: The sink refused several events in a row, and is left alone until it takes one again.
    """

    accepted: int
    delivered: int
    failed: int
    dropped: Mapping[str, int]
    pending: int
    last_error: str = ""
    down: bool = False

    @property
    def lost(self) -> int:
        """Events that never will arrive, other than by sampling, which was asked for."""
        return self.failed + sum(count for reason, count in self.dropped.items() if reason != "sampled")

    @property
    def degraded(self) -> bool:
        """True where events were lost, or may be because the sink is down."""
        return self.down or self.lost > 0

    @property
    def balanced(self) -> bool:
        """True where the ledger adds up; it always is."""
        return self.accepted == self.delivered + self.failed + sum(self.dropped.values()) + self.pending

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
