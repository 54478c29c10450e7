"""Sinks that do as they are told, and remember what they really took: the other side of every ledger."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal

from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks.base import BaseSink, Receipt

Mood = Literal["well", "down", "partly", "picky", "final", "interrupted"]
MOODS: tuple[Mood, ...] = ("well", "down", "partly", "picky", "final")


class MoodySink(BaseSink):
    """Takes, refuses, takes in part, or hangs.

    Attributes:
        mood: `well` takes all, `down` nothing, `partly` the first event of each batch, `picky` refuses errors (events
            whose status is one), `final` refuses all for good, `interrupted` is where a user presses Ctrl-C.
        taken: Ids of the events it has, in the order they came.
        going: Cleared, it hangs in its next write.
    """

    def __init__(self, name: str = "moody", *, whole_sessions: bool = False) -> None:
        self.name = name
        self.whole_sessions = whole_sessions
        self.mood: Mood = "well"
        self.taken: list[str] = []
        self.going = threading.Event()
        self.going.set()
        self.busy = 0
        self.overlaps = 0
        self.forks = 0

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        self.busy += 1
        self.overlaps += self.busy > 1
        try:
            self.going.wait()
            return self.obey(events)
        finally:
            self.busy -= 1

    def obey(self, events: Sequence[Event]) -> Receipt | None:
        if self.mood == "interrupted":
            raise KeyboardInterrupt
        if self.mood == "down":
            raise ConnectionError
        if self.mood == "final":
            raise SinkWriteError("REFUSED", retryable=False)
        if self.mood == "picky" and any(event.payload.get("status") == "error" for event in events):
            raise ValueError
        if self.mood == "partly" and len(events) > 1:
            self.taken.append(events[0].event_id)
            raise SinkWriteError("PARTLY", delivered=1)
        return self.take(events)

    def take(self, events: Sequence[Event]) -> Receipt | None:
        self.taken.extend(event.event_id for event in events)
        return None

    def after_fork(self) -> None:
        self.forks += 1


class BoxSink(MoodySink):
    """Keeps what it takes in a box, and says only later, by receipt, what became of it."""

    def __init__(self, name: str = "box") -> None:
        super().__init__(name)
        self.box: list[str] = []

    def take(self, events: Sequence[Event]) -> Receipt | None:
        self.box.extend(event.event_id for event in events)
        return self.post(len(self.box) // 2)

    def post(self, count: int) -> Receipt:
        """Send some of the box; one in five is refused at the other end, one in five is too old."""
        sent, self.box = self.box[:count], self.box[count:]
        refused, old = len(sent) // 5, len(sent) // 5
        good = sent[refused + old :]
        self.taken.extend(good)
        return Receipt(delivered=len(good), failed=refused, dropped={"too_old": old} if old else {})

    def idle(self) -> Receipt | None:
        return self.post(len(self.box)) if self.mood == "well" and self.going.is_set() else None

    def close(self) -> Receipt | None:
        return self.post(len(self.box))
