"""Spans as OTLP in JSON: ids in hex, 64-bit numbers as text, kinds and status codes as numbers (OTLP 1.x, "JSON")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from spanforge._version import __version__
from spanforge.standards import aitf, genai, openinference, own
from spanforge.standards._table import AttributeValue
from spanforge.standards.genai import SCHEMA_URL
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import Span, merged, spans

__all__ = ["otlp_json"]

_KINDS: Final = {"INTERNAL": 1, "CLIENT": 3}
_STATUSES: Final = {"unset": 0, "error": 2}
_NAMES: Final = merged(aitf.ATTRIBUTES_AND_LATER, genai.ATTRIBUTES, openinference.ATTRIBUTES, own.ATTRIBUTES)


def otlp_json(session: Session) -> dict[str, Any]:
    """Return a session as the body of an OTLP/HTTP request for traces, as the OTLP sink would send it."""
    by_source: dict[str, list[Span]] = {}
    sources = {stage.event.event_id: stage.event.source for stage in session.stages}
    for span in spans(session, _NAMES, aitf.DOCUMENT_AND_LATER):
        by_source.setdefault(sources[span.event_id], []).append(span)
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(_resource(source))},
                "scopeSpans": [
                    {
                        "scope": {"name": "spanforge", "version": __version__},
                        "spans": [_span(span) for span in group],
                        "schemaUrl": SCHEMA_URL,
                    }
                ],
                "schemaUrl": SCHEMA_URL,
            }
            for source, group in by_source.items()
        ]
    }


def _resource(source: str) -> dict[str, AttributeValue]:
    name, _, version = source.partition("@")
    said: dict[str, AttributeValue] = {
        "service.name": name or "unknown_service",
        "telemetry.sdk.name": "spanforge",
        "telemetry.sdk.language": "python",
        "telemetry.sdk.version": __version__,
    }
    if version:
        said["service.version"] = version
    return said


def _span(span: Span) -> dict[str, Any]:
    said: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id,
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
        "events": [
            {"name": event.name, "timeUnixNano": str(event.time_ns), "attributes": _attributes(event.attributes)}
            for event in span.events
        ],
        "droppedEventsCount": span.dropped_events,
        "status": {"code": _STATUSES[span.status], "message": span.error},
    }
    # An empty parent would be read as an id of no digits.
    return {name: value for name, value in said.items() if value or name == "status"}


def _attributes(attributes: Mapping[str, AttributeValue]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: AttributeValue) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    items: Iterable[str] = value
    return {"arrayValue": {"values": [{"stringValue": item} for item in items]}}
