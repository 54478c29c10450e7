"""One session as a timeline of its stages, with the chunks of each and whether they were used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanforge.analysis import StoredSession
from spanforge.cli._output import console, milliseconds, score, table, utc, visible
from spanforge.namespaces.event import Event
from spanforge.namespaces.stages import (
    ESCALATED,
    EVALUATED,
    FEEDBACK,
    GENERATED,
    QUERY,
    RERANKED,
    RETRIEVED,
    SESSION,
)

__all__ = ["print_timeline"]


def print_timeline(session: StoredSession, *, chunks: bool = True) -> None:
    """Print the stages of a session, and the chunks it retrieved."""
    summary = session.summary
    console.print(
        f"[bold]session[/] {visible(session.session_id)}  {summary.status}"
        + (f"  duration {milliseconds(summary.duration_ms)}" if session.ended else ", open")
        + f"  latency {milliseconds(summary.total_latency_ms)}"
        f"  grounding {score(summary.avg_grounding_score)}"
    )
    table(
        "",
        ["reported", "stage", "#latency", "what"],
        [
            (
                utc(event.timestamp)[11:23],
                event.event_type.removeprefix("llm."),
                milliseconds(latency(event)),
                describe(event),
            )
            for event in session.events
        ],
    )
    if chunks and (rows := _chunk_rows(session)):
        table("", ["chunk", "#score", "source", "used"], rows)


def latency(event: Event) -> float | None:
    """Return how long a stage took, in milliseconds; for a summary, its stages together."""
    return event.payload.get("total_latency_ms" if event.event_type == SESSION else "latency_ms")


def describe(event: Event) -> str:
    """Say in a few words what an event reports."""
    payload = event.payload
    words = {
        QUERY: lambda: _asked(payload),
        RETRIEVED: lambda: f"{len(payload.get('chunks', ()))} of {payload.get('total_found')} chunks",
        RERANKED: lambda: f"{payload.get('model')}: {payload.get('input_count')} to {payload.get('output_count')}",
        GENERATED: lambda: _generated(payload),
        EVALUATED: lambda: f"groundedness {score(payload.get('groundedness'))}",
        ESCALATED: lambda: f"{payload.get('rule')}, level {payload.get('level')}",
        FEEDBACK: lambda: str(payload.get("rating")),
        SESSION: lambda: _ended(payload),
    }
    said = words.get(event.event_type, lambda: "")()
    status = payload.get("status", "ok")
    return (
        said if status == "ok" or event.event_type == SESSION else f"{said} [{status}: {payload.get('error_message')}]"
    )


def _generated(payload: Any) -> str:
    tokens = f"{payload.get('prompt_tokens')} + {payload.get('output_tokens')} tokens"
    return f"{payload.get('model')}, {tokens}, grounding {score(payload.get('grounding_score'))}"


def _asked(payload: Mapping[str, Any]) -> str:
    retriever = payload.get("retriever_name") or "a retriever"
    return retriever if "top_k" in payload.get("assumed", ()) else f"top {payload.get('top_k')} of {retriever}"


def _ended(payload: Any) -> str:
    duration = payload.get("duration_ms")
    took = "" if duration is None else f", duration {milliseconds(duration)}"
    return f"{payload.get('status')}, {payload.get('end_reason')}{took}"


def _chunk_rows(session: StoredSession) -> list[tuple[str, str, str, str]]:
    used = {
        chunk_id
        for event in session.events
        if event.event_type == GENERATED
        for chunk_id in event.payload.get("chunk_ids_used", ())
    }
    last_order = [event for event in session.events if event.payload.get("chunks")][-1:]
    return [
        (
            chunk["chunk_id"],
            ("-" if chunk.get("score") is None else f"{chunk['score']:.3f}")
            + (f" ({chunk['raw_score']:.3g})" if chunk.get("raw_score") is not None else ""),
            chunk.get("source", ""),
            "yes" if chunk["chunk_id"] in used else "",
        )
        for event in last_order
        for chunk in event.payload["chunks"]
    ]
