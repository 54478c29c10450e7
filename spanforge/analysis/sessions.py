"""Sessions from stored events: stages are folded; summaries count only where stages are absent (design, section 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces import PAYLOADS
from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import SessionAggregate

__all__ = ["StoredSession", "is_sound", "stored_sessions"]

_SUMMARY = "llm.rag.session"
_STAGES = frozenset(
    {"llm.rag.query", "llm.rag.retrieved", "llm.rag.reranked", "llm.rag.generated", "llm.rag.evaluated"}
)
_FROM_SUMMARY = ("duration_ms", "started_at", "ended_at", "end_reason")


class StoredSession:
    """The events of one session, in the order they were emitted, each once.

    Args:
        session_id: The session.
        events: Its events, in any order, repeats included.
    """

    def __init__(self, session_id: str, events: Iterable[Event]) -> None:
        unique = {event.event_id: event for event in events}
        self.session_id = session_id
        self.events = [unique[event_id] for event_id in sorted(unique)]

    @cached_property
    def ended(self) -> bool:
        """True where a summary says that the session has ended."""
        return any(event.event_type == _SUMMARY for event in self.events)

    @cached_property
    def summary(self) -> RAGSessionPayload:
        """The fold over the stages, with times and end reason from the last summary, where there is one."""
        last = next((event for event in reversed(self.events) if event.event_type == _SUMMARY), None)
        told = None if last is None else RAGSessionPayload.from_dict(last.payload)
        if told is not None and not any(event.event_type in _STAGES for event in self.events):
            return told
        folded = SessionAggregate.of(*self.events).summary(self.session_id)
        if told is None:
            return folded
        return replace(folded, **{name: getattr(told, name) for name in _FROM_SUMMARY})

    @property
    def started_at(self) -> str:
        """When it began: as its summary says, else the time of its first event."""
        return self.summary.started_at or self.events[0].timestamp


def is_sound(event: Event) -> bool:
    """Tell whether an event's payload is what its type says; a type of a newer version is taken at its word."""
    payload = PAYLOADS.get(event.event_type)
    if payload is None:
        return True
    try:
        payload.from_dict(event.payload)
    except InvalidPayloadError:
        return False
    return True


def stored_sessions(events: Iterable[Event], damaged: Counter[str] | None = None) -> list[StoredSession]:
    """Group events by session, in the order the sessions began; events of no session are left out.

    Args:
        events: In any order, repeats included.
        damaged: Gets the count of events left out because their payload is not what their type says.
    """
    groups: dict[str, list[Event]] = {}
    for event in events:
        if not is_sound(event):
            if damaged is not None:
                damaged["payload"] += 1
        elif event.session_id:
            groups.setdefault(event.session_id, []).append(event)
    sessions = [StoredSession(session_id, group) for session_id, group in groups.items()]
    return sorted(sessions, key=lambda session: session.started_at)
