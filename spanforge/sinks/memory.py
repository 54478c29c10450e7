"""The memory sink: a bounded list of events, for tests and the sandbox."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from spanforge.namespaces.event import Event
from spanforge.sinks.base import BaseSink

__all__ = ["MemorySink"]


class MemorySink(BaseSink):
    """Keeps the last events that arrived.

    Args:
        limit: Events kept; older ones make room.
        name: What the ledger calls it.
    """

    def __init__(self, limit: int = 100_000, *, name: str = "memory") -> None:
        self.name = name
        self._events: deque[Event] = deque(maxlen=limit)

    def write(self, events: Sequence[Event], /) -> None:
        """Keep the events."""
        self._events.extend(events)

    @property
    def events(self) -> list[Event]:
        """The events kept, oldest first."""
        return list(self._events)

    def of_type(self, event_type: str) -> list[dict[str, Any]]:
        """Return the payloads of one type of event, such as `llm.rag.session`."""
        return [dict(event.payload) for event in self._events if event.event_type == event_type]

    def clear(self) -> None:
        """Forget every event."""
        self._events.clear()

    def after_fork(self) -> None:
        """What the parent kept is the parent's."""
        self._events.clear()
