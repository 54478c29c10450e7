"""What a sink is. Delivery knows sinks by this Protocol alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from spanforge.namespaces.event import Event

__all__ = ["BaseSink", "Sink"]


@runtime_checkable
class Sink(Protocol):
    """Takes batches of events from its own worker thread; no two calls run at once.

    Attributes:
        name: What the ledger calls it, for example `jsonl:events.jsonl`; free of secrets.
    """

    name: str

    def write(self, events: Sequence[Event], /) -> None:
        """Write every event, in order, or raise.

        Raises:
            SinkWriteError: Only `delivered` events from the front were written. Any other exception means that
                none of them was.
        """
        ...

    def idle(self) -> None:
        """Do what can wait until there is nothing to write (sync to disk, rotate by age); called at least once a second."""
        ...

    def close(self) -> None:
        """Release what the sink holds. A later `write` opens it anew."""
        ...

    def after_fork(self) -> None:
        """Forget, in a forked child, what belongs to the parent: locks, connections, chain state. Close nothing."""
        ...


class BaseSink:
    """A sink with nothing to do but write: derive from it and give `name` and `write`."""

    name: str = "sink"

    def idle(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is held."""

    def after_fork(self) -> None:
        """Nothing belongs to the parent."""
