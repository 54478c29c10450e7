"""Events to store: by number, and as a hypothesis strategy of anything an envelope can hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from spanforge import _clock, _ids
from spanforge.namespaces import PAYLOADS
from spanforge.namespaces.event import Event

LAW = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""No deadline: it would measure the machine. A folder may be shared by examples: each writes a file of its own. What is
drawn may be large: whether that is too much depends on which modules are loaded, whose constants are drawn too."""

START_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z


def event(number: int, *, session_id: str = "s1", event_type: str = "llm.rag.query", **payload: Any) -> Event:
    """Return the event with this number: distinct id, later than those with lower numbers."""
    wall_ns = START_NS + number * 1_000_000
    return Event(
        event_id=_ids.encode((wall_ns // 1_000_000 << 80) | number),
        event_type=event_type,
        timestamp=_clock.timestamp(wall_ns),
        source="tests@1.0.0",
        session_id=session_id,
        trace_id=_ids.trace_id_of(session_id),
        payload={"session_id": session_id, "query_hash": "0" * 64, "number": number, **payload},
    )


def events(count: int, start: int = 0, **fields: Any) -> list[Event]:
    return [event(number, **fields) for number in range(start, start + count)]


def numbers(stored: Iterable[Event]) -> list[int]:
    """Return which of `events` these are."""
    return [item.payload["number"] for item in stored]


def strict_lines(path: Path) -> list[dict[str, Any]]:
    """Return every line of a file as JSON; fails where one is not."""
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


TEXTS = st.text(st.characters(exclude_categories=[]), max_size=12)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.builds(
    Event,
    event_id=st.integers(1, (1 << 128) - 1).map(_ids.encode),
    event_type=st.sampled_from(tuple(PAYLOADS)) | NAMES,
    timestamp=st.integers(0, 4_000_000_000).map(lambda seconds: _clock.timestamp(seconds * 1_000_000_000 + 1_000)),
    source=st.just("tests@1.0.0"),
    session_id=TEXTS,
    trace_id=st.sampled_from(["", "0" * 32]),
    org_id=TEXTS,
    tags=st.dictionaries(TEXTS, TEXTS, max_size=3),
    payload=st.dictionaries(TEXTS, VALUES, max_size=4),
    extra=st.dictionaries(
        NAMES.map(lambda name: f"x_{name}"), VALUES.filter(lambda value: value is not None), max_size=2
    ),
)
