"""One bounded log of events, read by every sink at its own pace.

The caller appends once, however many sinks there are; each sink has a cursor. The log keeps what the slowest
cursor still needs, up to its bounds; beyond them the oldest events go, and only the sinks that had not read
them lose them. So each sink has a bounded queue of its own, and none holds up another (adr/0001).
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import Any, Final, cast

from spanforge._guard import guarded
from spanforge.namespaces.event import Draft
from spanforge.sinks.base import Receipt

__all__ = ["Cursor", "EventLog", "whole", "writing"]


def whole(count: object) -> int:
    """Return a count as a sink gave it; anything that is no whole number, or below zero, is none."""
    return max(0, count) if type(count) is int else 0


def _nothing(*_: Any) -> list[tuple[object, object]]:
    return []


@partial(guarded, recover=_nothing)
def _claims(receipt: Receipt) -> list[tuple[object, object]]:
    """Return what a receipt says, by outcome; one that cannot be read says nothing."""
    dropped = cast("object", receipt.dropped)
    reasons = cast("Mapping[object, object]", dropped).items() if isinstance(dropped, Mapping) else ()
    return [("delivered", receipt.delivered), ("failed", receipt.failed), *reasons]


writing: Final[ContextVar[bool]] = ContextVar("spanforge_writing", default=False)
"""Whether this is inside a sink's write. Not by thread: an application under gevent has all of its callers in one."""


class Cursor:
    """Where one sink stands in the log. Guarded by the log's lock.

    Attributes:
        position: Number of the next event to take.
        in_flight: Events taken and being written.
        gathered: Events taken out of the log that wait for the rest of their session.
        kept: Events the sink has and will account for later.
        delivered: Events written.
        failed: Events refused.
        dropped: Events lost to this sink, by reason.
    """

    __slots__ = ("delivered", "dropped", "failed", "gathered", "in_flight", "kept", "position")

    def __init__(self) -> None:
        self.position = 0
        self.in_flight = 0
        self.gathered = 0
        self.kept = 0
        self.delivered = 0
        self.failed = 0
        self.dropped: Counter[str] = Counter()


class EventLog:
    """The log, its lock, and what was decided for all sinks alike.

    Args:
        max_events: Events that may wait.
        max_bytes: Estimated bytes that may wait.
        lock: The owner's, where it has more to guard than this.

    Attributes:
        lock: Held around every change here; re-entrant, because a signal handler or a finaliser may trace too.
        changed: Notified when a worker or a flush may have something to do.
        closed: Nothing is delivered any more.
        held: Events of sessions that may yet be sampled out.
        refused: Events that go to no sink, by reason.
        sleepers: Workers that wait to be woken by the next event.
    """

    __slots__ = (
        "_bytes",
        "_head",
        "_items",
        "_max_bytes",
        "_max_events",
        "changed",
        "closed",
        "cursors",
        "held",
        "held_bytes",
        "lock",
        "refused",
        "sleepers",
    )

    def __init__(self, max_events: int, max_bytes: int, lock: threading.RLock | None = None) -> None:
        self.lock = threading.RLock() if lock is None else lock
        self.changed = threading.Condition(self.lock)
        self.cursors: list[Cursor] = []
        self.closed = False
        self.held = 0
        self.held_bytes = 0
        self.refused: Counter[str] = Counter()
        self.sleepers = 0
        self._head = 0
        self._items: deque[Draft] = deque()
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes

    @property
    def tail(self) -> int:
        """Number the next event will get."""
        return self._head + len(self._items)

    @property
    def accepted(self) -> int:
        """Events taken from the application: each is queued, held back or refused, by one step that has no half."""
        return self.tail + self.held + self.refused.total()

    def accept(self, draft: Draft) -> None:
        """Take an event from the application and queue it for every sink.

        Once closed, and where a sink traces from within its own write, it is counted dropped.
        """
        if writing.get():
            self.refuse("traced_by_sink")
        else:
            self._append(draft)

    def refuse(self, reason: str) -> None:
        """Take an event from the application and drop it at once, for a reason."""
        self.refused[reason] += 1

    def _append(self, draft: Draft) -> None:
        if self.closed:
            self.refused["shutdown"] += 1
            return
        if not self.cursors:
            self._head += 1
            return
        self._bytes += draft.size
        # One step, which neither an interrupt nor a handler that traces in between can halve.
        self._items.append(draft)
        while (self._bytes > self._max_bytes or len(self._items) > self._max_events) and len(self._items) > 1:
            self._discard_oldest()
        if self.sleepers:
            self.changed.notify_all()

    def hold(self, draft: Draft) -> bool:
        """Take an event and hold it back; False where there is no room to hold any more."""
        if self.held >= self._max_events or self.held_bytes + draft.size > self._max_bytes:
            return False
        self.held += 1
        self.held_bytes += draft.size
        return True

    def release(self, drafts: list[Draft]) -> None:
        """Queue events that were held back."""
        self.forget(drafts)
        for draft in drafts:
            self._append(draft)

    def forget(self, drafts: list[Draft]) -> None:
        """Stop counting events as held back; the caller says what becomes of them."""
        self.held -= len(drafts)
        self.held_bytes -= sum(draft.size for draft in drafts)

    def abandon(self, summaries: int) -> None:
        """Drop all that is held back, and summaries that there is no time to make."""
        self.refused["sampled"] += self.held
        self.held = self.held_bytes = 0
        self.refused["shutdown"] += summaries

    def waiting(self, cursor: Cursor) -> int:
        """Return how many events a sink can still take."""
        return self.tail - max(cursor.position, self._head)

    def fullness(self, cursor: Cursor) -> float:
        """Return how full a sink's queue is, from 0 to 1: the share of the log that it still has to take."""
        full = max(len(self._items) / self._max_events, self._bytes / self._max_bytes)
        return full * self.waiting(cursor) / max(1, len(self._items))

    def outstanding(self, cursor: Cursor, before: int) -> int:
        """Return how many events numbered under `before` still wait or are being written."""
        start = max(cursor.position, self._head)
        oldest_in_flight = cursor.position - cursor.in_flight
        in_flight = max(0, min(cursor.in_flight, before - oldest_in_flight))
        return max(0, before - start) + in_flight + cursor.gathered

    def take(self, cursor: Cursor, max_events: int) -> list[Draft]:
        """Hand the next events to a sink; they stay in the log until they are settled, so that they can be put back."""
        while True:
            self.count_losses(cursor)
            start = cursor.position
            stop = min(self.tail, start + max_events)
            try:
                taken = list(islice(self._items, start - self._head, stop - self._head))
            except (RuntimeError, ValueError):
                # A signal handler traced in between.
                continue
            cursor.position, cursor.in_flight = stop, len(taken)
            return taken

    def put_back(self, cursor: Cursor) -> None:
        """Undo a `take`."""
        cursor.position -= cursor.in_flight
        cursor.in_flight = 0

    def settle(
        self, cursor: Cursor, *, delivered: int = 0, failed: int = 0, dropped: int = 0, reason: str = ""
    ) -> None:
        """Record what became of events in flight, and let go of what no sink needs any more."""
        cursor.in_flight -= delivered + failed + dropped
        cursor.delivered += delivered
        cursor.failed += failed
        if dropped:
            cursor.dropped[reason] += dropped
        self.trim()

    def settle_kept(self, cursor: Cursor, receipt: Receipt) -> None:
        """Record what a sink says of events it kept; what it says of more events than it has is not believed."""
        for kind, count in _claims(receipt):
            settled = min(whole(count), cursor.kept)
            cursor.kept -= settled
            if kind == "delivered":
                cursor.delivered += settled
            elif kind == "failed":
                cursor.failed += settled
            elif settled:
                cursor.dropped[kind if type(kind) is str else "unnamed"] += settled
        self.changed.notify_all()

    def keep(self, cursor: Cursor, count: int) -> None:
        """Leave events that are in flight with the sink, which will account for them."""
        cursor.kept += count
        cursor.in_flight -= count
        self.trim()

    def gather(self, cursor: Cursor, count: int) -> None:
        """Let events that are in flight wait for the rest of their session, outside of the log."""
        cursor.gathered += count
        cursor.in_flight -= count

    def ungather(self, cursor: Cursor, count: int) -> None:
        """Put gathered events in flight."""
        cursor.gathered -= count
        cursor.in_flight += count

    def trim(self) -> None:
        """Let go of what no sink needs any more."""
        needed = min(other.position - other.in_flight for other in self.cursors)
        while self._head < min(needed, self.tail):
            self._discard_oldest()
        self.changed.notify_all()

    def give_up(self, cursor: Cursor, reason: str) -> None:
        """Drop everything that waits for a sink."""
        self.count_losses(cursor)
        cursor.dropped[reason] += self.tail - cursor.position + cursor.gathered
        cursor.gathered = 0
        cursor.position = self.tail

    def count_losses(self, cursor: Cursor) -> None:
        """Move a cursor that was overtaken to the oldest event there is, and count what it lost."""
        if cursor.position < self._head:
            cursor.dropped["queue_full"] += self._head - cursor.position
            cursor.position = self._head

    def pending(self, cursor: Cursor) -> int:
        """Return what a sink's ledger calls pending."""
        return self.held + self.waiting(cursor) + cursor.in_flight + cursor.gathered + cursor.kept

    def dropped(self, cursor: Cursor) -> dict[str, int]:
        """Return what a sink's ledger calls dropped, losses that its worker has not noticed yet included."""
        total = self.refused + cursor.dropped
        total["queue_full"] += max(0, self._head - cursor.position)
        return {reason: count for reason, count in total.items() if count}

    def _discard_oldest(self) -> None:
        self._head += 1
        self._bytes -= self._items.popleft().size
