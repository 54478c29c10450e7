"""Stored events as sessions: the same fold as the live table, over whatever was written, for each organisation apart.

Stages are folded; what a summary tells counts only where there are no stages. Of several summaries the one with the
highest event id counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from heapq import nsmallest
from typing import Any, Final, Protocol, Self

from spanforge.namespaces.event import Event
from spanforge.namespaces.feedback import FeedbackRating
from spanforge.namespaces.retrieval import SUMMARY_ONLY, RAGSessionPayload
from spanforge.namespaces.stages import ESCALATED, FEEDBACK, GENERATED, PAYLOADS, RERANKED, RETRIEVED, SESSION
from spanforge.sessions.fold import DEFAULT_ID_CAP, Totals

__all__ = ["StoredSession", "StoredTotals", "is_sound", "stored_sessions"]

_NANO: Final = 1_000_000_000
_SUMS: Final = ("events", "answers", "cited", "escalations", "ratings", "rated", "rating_sum", "judged", "helpful")
_MOST_FIRST: Final = 100
"""Ids remembered of what stages put first: a session has a few."""
_FIRST: Final[Mapping[str, str]] = {RETRIEVED: "retrieved_first", RERANKED: "reranked_first"}


class Addable(Protocol):
    """What the fold asks of an event."""

    @property
    def event_id(self) -> str:
        """Its id."""
        ...

    @property
    def event_type(self) -> str:
        """Its type."""
        ...

    @property
    def timestamp(self) -> str:
        """When it was emitted."""
        ...

    @property
    def payload(self) -> Mapping[str, Any]:
        """Its payload as JSON values."""
        ...


class StoredTotals:
    """The fold over the distinct stored events of one session, whole or in parts; adding and merging commute.

    Attributes:
        totals: What its stages add up to.
        events: How many it has; `escalations` and `ratings` are how many of those.
        answers: How many generations did not fail; `cited` is how many of those name chunks that they used.
        rated: How many ratings have a value; `rating_sum` is their sum in 1e-9.
        judged: How many ratings are more than words; `helpful` is how many of those find the answer so.
        retrieved_first: Ids of chunks that a retrieval put first, the smallest; `reranked_first` likewise.
        first: Id and time of the event emitted first; `last` of the last. Empty where there is none.
        told_at: Id of the last summary; empty where there is none. `told` is its payload.
    """

    def __init__(self, id_cap: int = DEFAULT_ID_CAP) -> None:
        self.totals = Totals(id_cap)
        self.events = self.answers = self.cited = self.escalations = 0
        self.ratings = self.rated = self.rating_sum = self.judged = self.helpful = 0
        self.retrieved_first: list[str] = []
        self.reranked_first: list[str] = []
        self.first: tuple[str, str] = ("", "")
        self.last: tuple[str, str] = ("", "")
        self.told_at = ""
        self.told: Mapping[str, Any] = {}

    def add(self, event: Addable) -> None:
        """Add a sound event of this session that has not been added before."""
        event_id, event_type, payload = event.event_id, event.event_type, event.payload
        self.events += 1
        if not self.first[0] or event_id < self.first[0]:
            self.first = (event_id, event.timestamp)
        if event_id > self.last[0]:
            self.last = (event_id, event.timestamp)
        self.totals.add(event_type, payload, event_id)
        if event_type == SESSION:
            self._tell(event_id, payload)
        elif event_type == ESCALATED:
            self.escalations += 1
        elif event_type == FEEDBACK:
            self._rate(payload)
        elif event_type == GENERATED:
            if payload.get("status", "ok") == "ok":
                self.answers += 1
                self.cited += bool(payload.get("chunk_ids_used"))
        elif event_type in _FIRST and (chunks := payload.get("chunks")):
            self._put_first(_FIRST[event_type], [chunks[0]["chunk_id"]])

    def merge(self, other: StoredTotals) -> None:
        """Add what another has seen, of events that this one has not."""
        self.totals.merge(other.totals)
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _FIRST.values():
            self._put_first(name, getattr(other, name))
        if other.events:
            self.first = min(self.first, other.first) if self.first[0] else other.first
            self.last = max(self.last, other.last)
        if other.told_at:
            self._tell(other.told_at, other.told)

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        state = {**vars(self), "totals": self.totals.dump()}
        if self.from_stages:
            # The rest of what a summary tells cannot count any more, and may be long.
            state["told"] = {name: self.told[name] for name in SUMMARY_ONLY if name in self.told}
        return state

    @classmethod
    def load(cls, state: Mapping[str, Any], id_cap: int = DEFAULT_ID_CAP) -> Self:
        """Return a fold that goes on from what `dump` gave."""
        fold = cls(id_cap)
        own = vars(fold)
        own.update({name: value for name, value in state.items() if name in own})
        fold.totals = Totals.load(state["totals"], id_cap)
        fold.first, fold.last = tuple(state["first"]), tuple(state["last"])
        return fold

    @property
    def ended(self) -> bool:
        """True where a summary says that the session has ended."""
        return bool(self.told_at)

    @property
    def from_stages(self) -> bool:
        """True where there is a stage, so that the figures are those of the stages."""
        totals = self.totals
        return any((totals.queries, totals.retrievals, totals.reranks, totals.generations, totals.evaluations))

    @property
    def rating(self) -> float | None:
        """Mean of the ratings that have a value, in [0, 1]; None where there are none."""
        return self.rating_sum / (_NANO * self.rated) if self.rated else None

    @property
    def reordered(self) -> bool | None:
        """True where a rerank put first what no retrieval had put first.

        None where there was nothing to put first, or so much that not all of it is remembered.
        """
        counts = len(self.retrieved_first), len(self.reranked_first)
        if not min(counts) or max(counts) >= _MOST_FIRST:
            return None
        return not set(self.reranked_first) <= set(self.retrieved_first)

    def summary(self, session_id: str) -> RAGSessionPayload:
        """Return the fold over the stages, with times and end reason from the last summary, where there is one."""
        if self.told_at and not self.from_stages:
            return RAGSessionPayload.from_dict({**self.told, "session_id": session_id})
        told = {name: self.told.get(name) for name in SUMMARY_ONLY}
        if (duration := told["duration_ms"]) is not None:
            told["duration_ms"] = float(duration)
        return RAGSessionPayload.trusted(self.totals.summary(session_id) | told)

    def _tell(self, event_id: str, payload: Mapping[str, Any]) -> None:
        if event_id > self.told_at:
            self.told_at, self.told = event_id, payload

    def _put_first(self, name: str, ids: Iterable[str]) -> None:
        known = getattr(self, name)
        # A cap that keeps the smallest commutes, as that of the ids does.
        if new := [one for one in ids if one not in known]:
            setattr(self, name, nsmallest(_MOST_FIRST, [*known, *new]))

    def _rate(self, payload: Mapping[str, Any]) -> None:
        self.ratings += 1
        helpful, value = FeedbackRating(payload["rating"]).helpful, payload.get("value")
        if helpful is not None:
            self.judged += 1
            self.helpful += helpful
        if value is not None:
            self.rated += 1
            self.rating_sum += int(value * _NANO + 0.5)


class StoredSession:
    """The events of one session, in the order they were emitted, each once.

    Args:
        session_id: The session.
        events: Its events, in any order, repeats included; of several with one id the first counts.
    """

    def __init__(self, session_id: str, events: Iterable[Event]) -> None:
        unique: dict[str, Event] = {}
        for event in events:
            unique.setdefault(event.event_id, event)
        self.session_id = session_id
        self.events = [unique[event_id] for event_id in sorted(unique)]

    @cached_property
    def fold(self) -> StoredTotals:
        """What its events add up to."""
        fold = StoredTotals()
        for event in self.events:
            fold.add(event)
        return fold

    @property
    def org_id(self) -> str:
        """The organisation it belongs to."""
        return self.events[0].org_id

    @property
    def ended(self) -> bool:
        """True where a summary says that the session has ended."""
        return self.fold.ended

    @cached_property
    def summary(self) -> RAGSessionPayload:
        """The fold over the stages, with times and end reason from the last summary, where there is one."""
        return self.fold.summary(self.session_id)

    @property
    def started_at(self) -> str:
        """When it began: as its summary says, else the time of its first event."""
        return self.summary.started_at or self.fold.first[1]


def is_sound(event: Event) -> bool:
    """Tell whether an event's payload is what its type says, and every text of it one that other programs can hold.

    The payload of a type of a newer version is taken at its word. Half a character is no text.
    """
    payload = PAYLOADS.get(event.event_type)
    try:
        if payload is not None:
            payload.from_dict(event.payload)
        line = event.encode()
        # Halves of characters stand in the line as escapes, and so do whole ones beyond the first plane.
        return b"\\ud" not in line or bool(json.dumps(json.loads(line), ensure_ascii=False).encode())
    except ValueError:
        return False


def stored_sessions(events: Iterable[Event], damaged: Counter[str] | None = None) -> list[StoredSession]:
    """Group events by organisation and session, in the order the sessions began; events of no session are left out.

    Args:
        events: In any order, repeats included.
        damaged: Gets the count of events left out because their payload is not what their type says.
    """
    groups: dict[tuple[str, str], dict[str, Event]] = {}
    for event in events:
        if not is_sound(event):
            if damaged is not None:
                damaged["payload"] += 1
        elif event.session_id:
            groups.setdefault(event.session_key, {}).setdefault(event.event_id, event)
    sessions = [StoredSession(session_id, group.values()) for (_, session_id), group in groups.items()]
    return sorted(sessions, key=lambda session: session.started_at)
