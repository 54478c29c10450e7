"""Rules held to events as they come, in any order, repeated or late: each match is told once, and no storm of them.

The time is that of the events, so that a log that is read again says the same: a moment is when a session's summary or
a rating was emitted, one in the future counts as now, and the latest moment so far is what the clock shows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextvars import Context
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias, TypeVar

from spanforge import _clock
from spanforge.analysis.alarms import ALARMS, BY_RATING, Alarm
from spanforge.namespaces.event import Event, Identity
from spanforge.namespaces.stages import FEEDBACK, SESSION, STAGE_TYPES
from spanforge.sdk import StoredSession, is_sound, sf_rag
from spanforge.sinks.base import BaseSink

__all__ = ["Match", "Watch", "Watcher"]

_OPEN_EVENTS: Final = 100_000
_REMEMBERED: Final = 100_000
_SAMPLES: Final = 100_000
_Key: TypeAlias = tuple[str, str]
_Id = TypeVar("_Id", Identity, _Key)


class Match(NamedTuple):
    """A rule that fired.

    Attributes:
        alarm: The rule.
        org_id: Whose session it was.
        session_id: The session that it fired for.
        value: The sample; for a rule with a share, the share.
        moment_ns: The time of it, in nanoseconds since the epoch.
        held_back: Matches of the rule that were held back since it last fired.
    """

    alarm: Alarm
    org_id: str
    session_id: str
    value: float
    moment_ns: int
    held_back: int


class Watcher:
    """Holds rules to events.

    A session is judged once, at its first summary that is not a partial view, by what has come of it until then; a
    rating, when it comes. An event that comes a second time counts once, as far back as 100,000 events are remembered.

    Args:
        alarms: The rules.

    Attributes:
        late: Stages that came after their session was judged, and count for nothing.
        unwatched: Stages of sessions that were given up because too many were open at once.
    """

    def __init__(self, alarms: Sequence[Alarm] = ALARMS) -> None:
        self._states = [_State(alarm) for alarm in alarms]
        self._open: OrderedDict[_Key, list[Event]] = OrderedDict()
        self._open_events = 0
        self._judged: OrderedDict[_Key, None] = OrderedDict()
        self._known: OrderedDict[Identity, None] = OrderedDict()
        self._latest_ns = 0
        self.late = self.unwatched = 0

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """How often each rule fired, and how many of its matches were held back."""
        return {state.alarm.name: (state.fired, state.held_back) for state in self._states}

    def look(self, event: Event, now_ns: int) -> list[Match]:
        """Take an event, and return the rules that fire at it.

        Args:
            event: The event.
            now_ns: The time now, in nanoseconds since the epoch.
        """
        if not event.session_id or not is_sound(event) or not _remember(self._known, event.identity):
            return []
        if event.event_type in STAGE_TYPES:
            self._wait(event)
        elif event.event_type == FEEDBACK:
            return self._judge(StoredSession(event.session_id, [event]), event, now_ns, by_rating=True)
        elif event.event_type == SESSION and not event.payload.get("partial_view"):
            stages = self._open.pop(event.session_key, [])
            self._open_events -= len(stages)
            if _remember(self._judged, event.session_key):
                return self._judge(StoredSession(event.session_id, [*stages, event]), event, now_ns, by_rating=False)
        return []

    def _wait(self, event: Event) -> None:
        key = event.session_key
        if key in self._judged:
            self.late += 1
            return
        self._open.setdefault(key, []).append(event)
        self._open.move_to_end(key)
        self._open_events += 1
        while self._open_events > _OPEN_EVENTS:
            _, given_up = self._open.popitem(last=False)
            self._open_events -= len(given_up)
            self.unwatched += len(given_up)

    def _judge(self, session: StoredSession, event: Event, now_ns: int, *, by_rating: bool) -> list[Match]:
        moment = _moment_ns(event, now_ns)
        self._latest_ns = max(self._latest_ns, moment)
        found: list[Match] = []
        for state in self._states:
            if (state.alarm.field in BY_RATING) is by_rating:
                for sample in state.alarm.samples(session):
                    value = state.judge(sample, moment, self._latest_ns)
                    if value is not None:
                        held = state.fire(self._latest_ns)
                        found.append(Match(state.alarm, event.org_id, event.session_id, value, moment, held))
        return found


class _State:
    """What one rule has seen."""

    def __init__(self, alarm: Alarm) -> None:
        self.alarm = alarm
        self.fired = self.held_back = 0
        self._window_ns = int(alarm.window_s * 1e9)
        self._fired_ns: int | None = None
        self._held_before = 0
        self._samples: list[tuple[int, bool]] = []
        self._matching = 0

    def judge(self, sample: float, moment: int, latest: int) -> float | None:
        """Return the value for which the rule fires; None where it does not, or is held back."""
        value = sample if self.alarm.matches(sample) else None
        if self.alarm.share is not None:
            value = self._share(matches=value is not None, moment=moment, latest=latest)
        if value is not None and self._is_silent(latest):
            self.held_back += 1
            return None
        return value

    def _is_silent(self, latest: int) -> bool:
        if self._fired_ns is not None and latest - self._fired_ns < self._window_ns:
            return True
        return self.alarm.quiet is not None and self.alarm.quiet.holds(latest)

    def fire(self, latest: int) -> int:
        """Note that the rule fires now; returns how many matches were held back since the last time."""
        self._fired_ns = latest
        self.fired += 1
        since, self._held_before = self.held_back - self._held_before, self.held_back
        return since

    def _share(self, *, matches: bool, moment: int, latest: int) -> float | None:
        """Return the share of the samples within the window that match, where it is large enough."""
        if moment <= latest - self._window_ns:
            return None
        heappush(self._samples, (moment, matches))
        self._matching += matches
        while self._samples[0][0] <= latest - self._window_ns or len(self._samples) > _SAMPLES:
            self._matching -= heappop(self._samples)[1]
        share, wanted = self._matching / len(self._samples), self.alarm.share or 0.0
        enough = len(self._samples) >= self.alarm.smallest_sample
        return share if enough and round(share, 9) >= round(wanted, 9) else None


class Watch(BaseSink):
    """A sink that escalates: it holds rules to the events of this process, and emits `llm.rag.escalated`.

    Whoever is to be called (`spanforge.sinks.webhook`, `spanforge.sinks.command`) is a sink of its own beside it, which
    gets what `sf_rag.escalate` is called for by hand too. What sampling leaves out is not seen.

    Args:
        alarms: The rules, as `Policy.read(path).alarms` gives them; the triggers of P-KNOW-RAG without any.

    Attributes:
        watcher: What holds the rules; `watcher.counts` tells what fired, and what was held back.
    """

    name = "watch"

    def __init__(self, alarms: Sequence[Alarm] = ALARMS) -> None:
        self._alarms = alarms
        self.watcher = Watcher(alarms)

    def write(self, events: Iterable[Event], /) -> None:
        """Look at events, and escalate."""
        for event in events:
            for match in self.watcher.look(event, _clock.wall_ns()):
                # What a sink traces from its own write goes no further, lest it go round for ever. This does not:
                # an escalation matches no rule.
                Context().run(escalate, match)

    def after_fork(self) -> None:
        """Begin anew in the child."""
        self.watcher = Watcher(self._alarms)


def escalate(match: Match) -> None:
    """Emit the escalation of a rule that fired."""
    alarm = match.alarm
    threshold = alarm.threshold if alarm.share is None else alarm.share
    with sf_rag.bind(org_id=match.org_id):
        sf_rag.escalate(
            match.session_id,
            alarm.name,
            trigger=alarm.trigger,
            level=alarm.level,
            value=match.value,
            threshold=threshold,
        )


def _moment_ns(event: Event, now_ns: int) -> int:
    try:
        return min(_clock.parse_timestamp(event.timestamp), now_ns)
    except (ValueError, OverflowError):
        return now_ns


def _remember(known: OrderedDict[_Id, None], one: _Id) -> bool:
    """Remember an id; False where it was known."""
    if one in known:
        return False
    known[one] = None
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
    return True
