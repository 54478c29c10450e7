"""Stores of any size: sessions of six events with figures that differ, made fast and the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from spanforge import _clock, _ids
from spanforge.namespaces.event import Event
from spanforge.sinks.sqlite import SqliteSink

EVENTS_EACH = 6
_START_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
_APART_NS = 7_000_000_000
_BATCH = 6_000
_LATENCIES = (0.5, 3, 2.5, 6, 2)


def many_events(sessions: int, *, org: str = "", first: int = 0) -> Iterator[Event]:
    """Give the events of some sessions, by number, each seven seconds after the one before."""
    random = Random(sessions)  # noqa: S311  the same each time, which is the point
    for number in range(first, first + sessions):
        yield from _session(number, random, org)


def fill(path: Path, sessions: int, *, org: str = "") -> Path:
    """Write a database of the sqlite sink with this many sessions."""
    sink, events = SqliteSink(path), many_events(sessions, org=org)
    while batch := list(islice(events, _BATCH)):
        sink.write(batch)
    sink.close()
    return path


def _session(number: int, random: Random, org: str) -> Iterator[Event]:
    start = _START_NS + number * _APART_NS
    session_id = _ids.encode((start // 1_000_000 << 80) | number)
    failed = random.random() < 0.03
    at = start
    for place, (event_type, payload) in enumerate(_stages(number, random, failed=failed)):
        payload["latency_ms"] = round(random.lognormvariate(_LATENCIES[place], 0.5), 3)
        at += int(payload["latency_ms"] * 1_000_000)
        yield _event(session_id, number * EVENTS_EACH + place, at, event_type, payload, org)
    summary = {
        "status": "error" if failed else "ok",
        "started_at": _clock.timestamp(start),
        "ended_at": _clock.timestamp(at),
        "end_reason": "ended",
        "duration_ms": (at - start) / 1e6,
    }
    yield _event(session_id, number * EVENTS_EACH + 5, at, "llm.rag.session", summary, org)


def _stages(number: int, random: Random, *, failed: bool) -> list[tuple[str, dict[str, Any]]]:
    score = round(random.betavariate(6, 1.6), 3)
    count = 0 if random.random() < 0.04 else 5
    chunks = [
        {
            "chunk_id": f"c{random.randrange(5000)}",
            "score": round(0.95 - 0.07 * rank, 3),
            "source": f"guide-{random.randrange(40)}.md",
        }
        for rank in range(count)
    ]
    query = {"query_hash": f"{number % 977:064x}", "retriever_name": "wiki" if number % 5 == 0 else "docs"}
    reranked = {"model": "rerank-small", "input_count": count, "output_count": count, "chunks": chunks[::-1][:3]}
    generated = {
        "model": "model-b" if number % 3 == 0 else "model-a",
        "chunk_ids_used": [chunk["chunk_id"] for chunk in chunks[:2]],
        "prompt_tokens": random.randrange(200, 2000),
        "output_tokens": random.randrange(20, 300),
        **({"status": "error", "error_message": "TimeoutError"} if failed else {"grounding_score": score}),
    }
    evaluated = {"evaluator": "judge", "groundedness": score, "claims_total": 4, "claims_supported": 3}
    return [
        ("llm.rag.query", query),
        ("llm.rag.retrieved", {"chunks": chunks, "total_found": count}),
        ("llm.rag.reranked", reranked),
        ("llm.rag.generated", generated),
        ("llm.rag.evaluated", evaluated),
    ]


def _event(  # noqa: PLR0917  what differs from event to event, in the order of the envelope
    session_id: str, number: int, at: int, event_type: str, payload: dict[str, Any], org: str
) -> Event:
    return Event(
        event_id=_ids.encode((at // 1_000_000 << 80) | number),
        event_type=event_type,
        timestamp=_clock.timestamp(at),
        source="tests@1.0.0",
        session_id=session_id,
        org_id=org,
        payload={"session_id": session_id, **payload},
    )


def _worse(event: Event, random: Random) -> Event:
    """Return an event of a release that is slower, grounds worse, costs more and is often escalated and disliked."""
    payload: dict[str, Any] = dict(event.payload)
    if event.event_type == "llm.rag.generated":
        payload |= {"latency_ms": payload["latency_ms"] * 3, "cost_usd": 0.02, "chunk_ids_used": []}
        if "grounding_score" in payload:
            payload["grounding_score"] *= 0.7
    elif event.event_type == "llm.rag.evaluated":
        escalated = random.random() < 0.5
        payload = {"session_id": event.session_id, "rule": "low", "trigger": "manual"} if escalated else payload
        kind = "llm.rag.escalated" if escalated else event.event_type
        return replace(event, event_type=kind, payload=payload, tags={"release": "2"})
    return replace(event, payload=payload, tags={"release": "2"})


def _rated(event: Event, rating: str, value: float) -> Event:
    payload = {"feedback_id": "f", "session_id": event.session_id, "trace_id": "", "rating": rating, "value": value}
    return replace(event, event_id=f"{event.event_id[:-1]}Z", event_type="llm.feedback.submitted", payload=payload)


def two_releases(count: int) -> list[Event]:
    """Return this many sessions of each of two releases; the second does worse. Every other one is rated."""
    random, found = Random(5), list[Event]()  # noqa: S311  the same each time
    for event in many_events(count):
        found.append(replace(event, tags={"release": "1"}))
    for event in many_events(count, first=count):
        found.append(_worse(event, random))
    for number, event in enumerate([one for one in found if one.event_type == "llm.rag.session"]):
        if number % 2:
            found.append(_rated(event, "thumbs_up" if event.tags == {"release": "1"} else "thumbs_down", 0.5))
    return found
