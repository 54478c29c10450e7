"""Holds the stages of open sessions back, so that a sink that asks for it gets each session as a whole.

Nothing is dropped here. A session is let go when its summary is there, after it has waited too long, or to
make room; stages that come after their summary pass at once. What is held is still pending.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from spanforge.namespaces.event import Event
from spanforge.namespaces.stages import SESSION, STAGE_TYPES

__all__ = ["Gather", "size_of"]

_REMEMBERED: Final = 1_000
_NOMINAL_BYTES: Final = 600


class _Held:
    """The stages of one open session."""

    __slots__ = ("bytes", "events", "since")

    def __init__(self, since: float) -> None:
        self.events: list[Event] = []
        self.bytes = 0
        self.since = since


class Gather:
    """Events by session, until their session is whole. Not locked: one worker owns it.

    Args:
        max_events: Events held back; beyond it the oldest session is let go as it is.
        max_bytes: Bytes of encoded events held back, likewise.
        max_age_s: Seconds a session is waited for, from its first stage.
    """

    def __init__(self, max_events: int = 2_000, max_bytes: int = 8 << 20, max_age_s: float = 60.0) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._open: OrderedDict[tuple[str, str], _Held] = OrderedDict()
        self._ready: deque[list[Event]] = deque()
        self._ended: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._held_events = 0
        self._held_bytes = 0
        self._ready_events = 0

    def __len__(self) -> int:
        return self._held_events + self._ready_events

    @property
    def due(self) -> float | None:
        """When there will be something to take, on the caller's clock; None while nothing is held."""
        if self._ready:
            return 0.0
        oldest = next(iter(self._open.values()), None)
        return None if oldest is None else oldest.since + self._max_age_s

    def add(self, events: Iterable[Event], now: float) -> None:
        """Take events in.

        Args:
            events: In order of emission.
            now: Seconds on any clock that does not step back.
        """
        for event in events:
            self._add(event, now)
        while self._held_events > self._max_events or self._held_bytes > self._max_bytes:
            self._release(next(iter(self._open)))

    def take(self, now: float, *, everything: bool = False, limit: int = 512) -> list[Event]:
        """Return whole sessions, each in one piece, and forget them.

        Args:
            now: As for `add`.
            everything: Let go of what is still held back too, for a flush or the end.
            limit: Events after which no further session is begun; one session may be larger.
        """
        while self._open:
            key, oldest = next(iter(self._open.items()))
            if not everything and now - oldest.since < self._max_age_s:
                break
            self._release(key)
        taken: list[Event] = []
        while self._ready and (not taken or len(taken) + len(self._ready[0]) <= limit):
            taken.extend(self._ready.popleft())
        self._ready_events -= len(taken)
        return taken

    def put_back(self, events: Sequence[Event]) -> None:
        """Undo a `take` of these events; they are the first to be taken again, each session by itself."""
        sessions = [list(session) for _, session in groupby(events, attrgetter("session_key"))]
        self._ready.extendleft(reversed(sessions))
        self._ready_events += len(events)

    def _add(self, event: Event, now: float) -> None:
        key = event.session_key
        held = self._open.get(key)
        if held is None:
            if event.event_type not in STAGE_TYPES or key in self._ended:
                self._pass(event)
                return
            held = self._open[key] = _Held(now)
        size = size_of(event)
        held.events.append(event)
        held.bytes += size
        self._held_events += 1
        self._held_bytes += size
        if event.event_type == SESSION:
            self._release(key)
            self._remember(key)

    def _pass(self, event: Event) -> None:
        self._ready.append([event])
        self._ready_events += 1
        if event.event_type == SESSION:
            self._remember(event.session_key)

    def _release(self, key: tuple[str, str]) -> None:
        held = self._open.pop(key)
        self._held_events -= len(held.events)
        self._held_bytes -= held.bytes
        self._ready.append(held.events)
        self._ready_events += len(held.events)

    def _remember(self, key: tuple[str, str]) -> None:
        self._ended[key] = None
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)


def size_of(event: Event) -> int:
    """Return the bytes of an event's line."""
    try:
        return len(event.encode())
    except ValueError:
        # Made outside spanforge; the sink will say what is wrong with it.
        return _NOMINAL_BYTES
