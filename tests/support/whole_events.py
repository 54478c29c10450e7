"""The yardstick for reading stored events: sessions as they were read before anything was streamed.

Every line becomes a whole event, its payload is built as an object to see whether it is sound, all events are held, and
each session is folded at its end. These steps are frozen, so that a better reader does not lower what it is held
against; the envelope, the payload classes and the sums they call are the package's, which have not become faster since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from spanforge.exceptions import DecodeError, InvalidPayloadError
from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.namespaces.stages import PAYLOADS, SESSION, STAGE_TYPES
from spanforge.sessions.fold import SessionAggregate

__all__ = ["held_sessions"]

_FROM_SUMMARY = ("duration_ms", "started_at", "ended_at", "end_reason")
_REMEMBERED = 1_000_000


def held_sessions(log: Path) -> list[RAGSessionPayload]:
    """Return the sessions of a log, the one that began first first."""
    groups: dict[str, list[Event]] = {}
    for event in _without_repeats(_events(log)):
        if _is_sound(event) and event.session_id:
            groups.setdefault(event.session_id, []).append(event)
    return sorted(map(_summary, groups.values()), key=lambda summary: summary.started_at or "")


def _events(log: Path) -> Iterator[Event]:
    with log.open("rb") as lines:
        for line in lines:
            try:
                yield Event.decode(line)
            except DecodeError:
                continue


def _without_repeats(events: Iterator[Event]) -> Iterator[Event]:
    known: set[str] = set()
    order: deque[str] = deque()
    for event in events:
        if event.event_id in known:
            continue
        known.add(event.event_id)
        order.append(event.event_id)
        if len(order) > _REMEMBERED:
            known.remove(order.popleft())
        yield event


def _is_sound(event: Event) -> bool:
    if (payload := PAYLOADS.get(event.event_type)) is None:
        return True
    names = payload.__dataclass_fields__.keys()
    try:
        payload(**{name: value for name, value in event.payload.items() if name in names})
    except InvalidPayloadError:
        return False
    return True


def _summary(group: list[Event]) -> RAGSessionPayload:
    unique = {event.event_id: event for event in group}
    events = [unique[event_id] for event_id in sorted(unique)]
    last = next((event for event in reversed(events) if event.event_type == SESSION), None)
    told = None if last is None else RAGSessionPayload(**last.payload)
    if told is not None and not any(event.event_type in STAGE_TYPES for event in events):
        return told
    folded = SessionAggregate.of(*events).summary(events[0].session_id)
    return folded if told is None else replace(folded, **{name: getattr(told, name) for name in _FROM_SUMMARY})
