"""OTLP in JSON says what the sink's protobuf says."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given, settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.sessions import sessions

from spanforge.namespaces.event import Event
from spanforge.sinks._otlp_transport import Answer
from spanforge.sinks.otlp import OtlpSink
from spanforge.standards.tree.session import Session
from spanforge.viewer.exports import FORMS, export
from spanforge.viewer.otlp_json import otlp_json

_IDS = {"traceId", "spanId", "parentSpanId"}


class _Kept:
    """Takes what the sink would send."""

    def __init__(self) -> None:
        self.traces: list[bytes] = []

    def send(self, signal: str, body: bytes) -> Answer:
        if signal == "traces":
            self.traces.append(body)
        return Answer(b"")

    def close(self) -> None:
        """Nothing is open."""


def _in_base64(value: Any, name: str = "") -> Any:
    """Turn the ids, hex in OTLP, into what protobuf's own JSON has."""
    if isinstance(value, dict):
        return {key: _in_base64(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_base64(item) for item in value]
    return base64.b64encode(bytes.fromhex(value)).decode() if name in _IDS else value


def _spans(request: ExportTraceServiceRequest) -> dict[str, Any]:
    """Return the request with its spans by id: a batch has them in the order of its events, a file root first."""
    [resource] = MessageToDict(request)["resourceSpans"]
    # A process has one, a file has none.
    said = [one for one in resource["resource"]["attributes"] if one["key"] != "service.instance.id"]
    resource["resource"]["attributes"] = sorted(said, key=lambda one: one["key"])
    [scope] = resource["scopeSpans"]
    return {**resource, "scopeSpans": {**scope, "spans": {span["spanId"]: span for span in scope["spans"]}}}


@settings(max_examples=40)
@given(events=sessions())
def test_otlp_json_is_what_the_sink_sends(events: list[Event]) -> None:
    kept = _Kept()
    OtlpSink("http://127.0.0.1:4318", transport=kept, signals=()).write(events)
    said = json.loads(json.dumps(otlp_json(Session(events)), allow_nan=False))
    if not kept.traces:
        assert said == {"resourceSpans": []}
        return
    [body] = kept.traces
    sent = ExportTraceServiceRequest.FromString(body)
    assert _spans(ParseDict(_in_base64(said), ExportTraceServiceRequest())) == _spans(sent)


@pytest.mark.parametrize("form", FORMS)
def test_names_of_files_are_plain(form: str) -> None:
    session = Session(_session("../../etc/passwd\r\nx: y"))
    if form in {"transparency", "tez"}:
        return
    name, content, media_type = export(session, form)
    assert name.replace("-", "").replace(".", "").isalnum()
    assert content
    assert "/" in media_type


def _session(session_id: str) -> list[Event]:
    from support.stored import event

    return [
        event(1, session_id=session_id),
        event(2, session_id=session_id, event_type="llm.rag.retrieved", chunks=[{"chunk_id": "a"}]),
    ]
