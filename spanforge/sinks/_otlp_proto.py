"""Spans, log records and metric points as OTLP protobuf messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from spanforge._version import __version__
from spanforge.exceptions import MissingExtraError, SinkWriteError
from spanforge.metrics.instruments import Attributes as Key
from spanforge.metrics.instruments import Instrument
from spanforge.metrics.meter import Point, Snapshot
from spanforge.sinks._otlp_transport import Answer, Signal
from spanforge.standards._table import AttributeValue
from spanforge.standards.genai import SCHEMA_URL, EvaluationResult
from spanforge.standards.tree.spans import Span

try:
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
        ExportLogsServiceRequest,
        ExportLogsServiceResponse,
    )
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
        ExportMetricsServiceResponse,
    )
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import (
        SEVERITY_NUMBER_INFO,
        LogRecord,
        ResourceLogs,
        ScopeLogs,
    )
    from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1 import trace_pb2
except ImportError:
    raise MissingExtraError("The OTLP sink", "otel") from None

__all__ = ["logs_request", "metrics_request", "rejected", "trace_request"]

_KINDS: Final = {
    "INTERNAL": trace_pb2.Span.SPAN_KIND_INTERNAL,
    "CLIENT": trace_pb2.Span.SPAN_KIND_CLIENT,
}
_STATUSES: Final = {
    "unset": trace_pb2.Status.STATUS_CODE_UNSET,
    "error": trace_pb2.Status.STATUS_CODE_ERROR,
}
_ANSWERS: Final[Mapping[Signal, Any]] = {
    "traces": ExportTraceServiceResponse,
    "logs": ExportLogsServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}
_REFUSED: Final[Mapping[Signal, str]] = {
    "traces": "rejected_spans",
    "logs": "rejected_log_records",
    "metrics": "rejected_data_points",
}
_PROTOBUF: Final = frozenset({"application/x-protobuf", "application/protobuf", "application/octet-stream", ""})
_MAX_INT: Final = (1 << 63) - 1
_SCOPE: Final = InstrumentationScope(name="spanforge", version=__version__)


def _value(value: AttributeValue) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=item) for item in value]))


def _attributes(attributes: Mapping[str, AttributeValue]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _resource(said: Mapping[str, str]) -> Resource:
    return Resource(attributes=_attributes(said))


def _span(span: Span) -> trace_pb2.Span:
    return trace_pb2.Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_span_id),
        name=span.name,
        kind=_KINDS[span.kind],
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=_attributes(span.attributes),
        events=[
            trace_pb2.Span.Event(
                name=event.name, time_unix_nano=event.time_ns, attributes=_attributes(event.attributes)
            )
            for event in span.events
        ],
        dropped_events_count=span.dropped_events,
        status=trace_pb2.Status(code=_STATUSES[span.status], message=span.error),
    )


def trace_request(sent: Iterable[tuple[Mapping[str, str], Iterable[Span]]]) -> ExportTraceServiceRequest:
    """Return the request that sends these spans, by the resource of what emitted them."""
    return ExportTraceServiceRequest(
        resource_spans=[
            trace_pb2.ResourceSpans(
                resource=_resource(resource),
                scope_spans=[
                    trace_pb2.ScopeSpans(scope=_SCOPE, spans=[_span(span) for span in spans], schema_url=SCHEMA_URL)
                ],
                schema_url=SCHEMA_URL,
            )
            for resource, spans in sent
        ]
    )


def rejected(signal: Signal, answer: Answer) -> int:
    """Return how many spans, records or points a receiver says it refused.

    Raises:
        SinkWriteError: The answer is none that a receiver of OTLP gives; whoever gave it has nothing.
    """
    message: Any = _ANSWERS[signal]()
    readable = answer.media_type in _PROTOBUF or not answer.body
    try:
        if readable:
            message.ParseFromString(answer.body)
        elif answer.media_type == "application/json":
            # Strictly: an error in JSON is an object too.
            json_format.Parse(answer.body, message)
            readable = answer.body.lstrip().startswith(b"{")
    except (DecodeError, json_format.ParseError, UnicodeDecodeError):
        readable = False
    if not readable:
        # Raised here, outside the handler: what it caught holds parts of the answer.
        raise SinkWriteError("answer_unreadable")
    return max(0, getattr(message.partial_success, _REFUSED[signal]))


def logs_request(resource: Mapping[str, str], results: Iterable[EvaluationResult]) -> ExportLogsServiceRequest:
    """Return the request that sends evaluation results as log records."""
    records = [
        LogRecord(
            time_unix_nano=result.time_ns,
            observed_time_unix_nano=result.time_ns,
            severity_number=SEVERITY_NUMBER_INFO,
            event_name="gen_ai.evaluation.result",
            trace_id=bytes.fromhex(result.trace_id),
            span_id=bytes.fromhex(result.span_id),
            attributes=_attributes(result.attributes),
        )
        for result in results
    ]
    scoped = [ScopeLogs(scope=_SCOPE, log_records=records, schema_url=SCHEMA_URL)]
    return ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(resource=_resource(resource), scope_logs=scoped, schema_url=SCHEMA_URL)]
    )


def _metric(instrument: Instrument, found: Mapping[Key, Point], taken: Snapshot, temporality: Any) -> pb.Metric:
    metric = pb.Metric(name=instrument.name, unit=instrument.unit, description=instrument.description)
    data: Any = metric.histogram if instrument.bounds else metric.sum
    data.aggregation_temporality = temporality
    if not instrument.bounds:
        data.is_monotonic = True
    for attributes, point in found.items():
        data.data_points.add(
            attributes=_attributes(dict(attributes)),
            start_time_unix_nano=taken.start_ns,
            time_unix_nano=taken.end_ns,
            **_values(instrument, point),
        )
    return metric


def _values(instrument: Instrument, point: Point) -> dict[str, Any]:
    if not instrument.bounds:
        return {"as_int": min(int(point.total), _MAX_INT)}
    return {
        "count": point.count,
        "sum": point.total,
        "bucket_counts": point.buckets,
        "explicit_bounds": instrument.bounds,
    }


def metrics_request(resource: Mapping[str, str], taken: Snapshot, *, delta: bool) -> ExportMetricsServiceRequest:
    """Return the request that sends these points."""
    temporality = pb.AGGREGATION_TEMPORALITY_DELTA if delta else pb.AGGREGATION_TEMPORALITY_CUMULATIVE
    metrics = [_metric(instrument, found, taken, temporality) for instrument, found in taken.points.items()]
    scoped = [pb.ScopeMetrics(scope=_SCOPE, metrics=metrics, schema_url=SCHEMA_URL)]
    return ExportMetricsServiceRequest(
        resource_metrics=[pb.ResourceMetrics(resource=_resource(resource), scope_metrics=scoped, schema_url=SCHEMA_URL)]
    )
