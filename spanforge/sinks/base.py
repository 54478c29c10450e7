"""What a sink is. Delivery knows sinks by this Protocol alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from spanforge.metrics.meter import Meter, PointLedger
from spanforge.namespaces.event import Event

__all__ = ["BaseSink", "Receipt", "Sink"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a sink that keeps events for later says of them: those it names are settled, the others stay pending.

    Each event counts once over the life of the sink object in this process, in whichever receipt comes first.

    Attributes:
        delivered: Events the receiver has.
        failed: Events the receiver refused.
        dropped: Events given up, by reason.
        last_error: Class or code of what went wrong with some of them; free of user text.
    """

    delivered: int = 0
    failed: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    last_error: str = ""

    @property
    def total(self) -> int:
        """Events settled by this receipt."""
        return self.delivered + self.failed + sum(self.dropped.values())


@runtime_checkable
class Sink(Protocol):
    """Takes batches of events from its own worker thread; no two calls run at once.

    Attributes:
        name: What the ledger calls it, for example `jsonl:events.jsonl`; free of secrets.
    """

    name: str

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        """Write every event, in order, or raise.

        Returns:
            None where all of them are written; a receipt from a sink that keeps some of them for later.

        Raises:
            SinkWriteError: Only `delivered` events from the front were written. Any other exception means that
                none of them was. What is refused with an `OSError`, which this is unless `retryable` is False, waits
                until the sink takes it; what is refused with anything else fails.
        """
        ...

    def idle(self) -> Receipt | None:
        """Do what can wait until there is nothing to write (sync, rotate, drain); called about once a second."""
        ...

    def close(self) -> Receipt | None:
        """Release what the sink holds. A later `write` opens it anew."""
        ...

    def after_fork(self) -> None:
        """Forget, in a forked child, what belongs to the parent: locks, connections, chain state. Close nothing."""
        ...


class BaseSink:
    """A sink with nothing to do but write: derive from it and give `name` and `write`.

    Attributes:
        whole_sessions: True asks for a session's events together, as far as they can be waited for.
        meter: Gets every event before sampling, where the sink gives out figures.
        metric_points: What became of those figures, where it sends them.
    """

    name: str = "sink"
    whole_sessions: bool = False
    meter: Meter | None = None

    @property
    def metric_points(self) -> PointLedger | None:
        """No figures are sent."""
        return None

    def idle(self) -> Receipt | None:
        """Nothing waits."""

    def close(self) -> Receipt | None:
        """Nothing is held."""

    def after_fork(self) -> None:
        """Nothing belongs to the parent."""
