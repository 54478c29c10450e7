"""Where a worker takes events from: the log as it is, or gathered into whole sessions."""

from __future__ import annotations

from spanforge.delivery.gather import Gather, size_of
from spanforge.delivery.queue import Cursor, EventLog
from spanforge.namespaces.event import Event

__all__ = ["GatheredSupply", "Supply"]


class Supply:
    """Events in the order they were emitted.

    Args:
        log: The log.
        cursor: The sink's place in it.
        source: Who emits, for the envelope.
    """

    def __init__(self, log: EventLog, cursor: Cursor, source: str) -> None:
        self._log = log
        self._cursor = cursor
        self._source = source

    def waiting(self, now: float, *, everything: bool) -> int:  # noqa: ARG002  for supplies that let events wait
        """Return how many events could be taken. The log's lock must be held.

        Args:
            now: Monotonic seconds.
            everything: Do not wait for sessions to be whole.
        """
        return self._log.waiting(self._cursor)

    def take(self, limit: int, now: float, *, everything: bool) -> list[Event]:
        """Put the next events in flight and return them, or fail and leave none there.

        The log's lock must not be held.
        """
        with self._log.lock:
            drafts = self._log.take(self._cursor, limit)
        taken = False
        try:
            # Finishing them takes time, and callers who trace want the lock.
            events = self._sorted([draft.event(self._source) for draft in drafts], limit, now, everything=everything)
            taken = True
        finally:
            if not taken:
                with self._log.lock:
                    self._log.put_back(self._cursor)
        return events

    def _sorted(self, fresh: list[Event], limit: int, now: float, *, everything: bool) -> list[Event]:  # noqa: ARG002  as for `waiting`
        return fresh

    def put_back(self, events: list[Event]) -> None:  # noqa: ARG002  the log still has them
        """Undo a `take` of what is in flight still. The log's lock must be held."""
        self._log.put_back(self._cursor)

    def drop(self, reason: str) -> None:
        """Give up everything that waits. The log's lock must be held."""
        self._log.give_up(self._cursor, reason)


class GatheredSupply(Supply):
    """Events by session, for sinks that want each session whole."""

    def __init__(self, log: EventLog, cursor: Cursor, source: str) -> None:
        super().__init__(log, cursor, source)
        self._gather = Gather()

    def waiting(self, now: float, *, everything: bool) -> int:
        """As for `Supply`; events that still wait for their session do not count."""
        due = self._gather.due
        gathered = len(self._gather) if everything or (due is not None and due <= now) else 0
        return super().waiting(now, everything=everything) + gathered

    def _sorted(self, fresh: list[Event], limit: int, now: float, *, everything: bool) -> list[Event]:
        """Return whole sessions; nothing may come of it while no session is whole."""
        for event in fresh:
            size_of(event)  # encodes it, which it remembers, before the lock is taken
        with self._log.lock:
            for event in fresh:
                self._gather.add((event,), now)
                self._log.gather(self._cursor, 1)
            self._log.trim()
            events = self._gather.take(now, everything=everything, limit=limit)
            self._log.ungather(self._cursor, len(events))
        return events

    def put_back(self, events: list[Event]) -> None:
        """As for `Supply`."""
        self._gather.put_back(events)
        self._log.gather(self._cursor, len(events))
        self._log.trim()

    def drop(self, reason: str) -> None:
        """As for `Supply`."""
        super().drop(reason)
        self._gather = Gather()
