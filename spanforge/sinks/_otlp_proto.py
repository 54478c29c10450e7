"""Spans, log records and metric points as OTLP protobuf messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from spanforge._version import __version__
from spanforge.conventions._table import AttributeValue
from spanforge.conventions.genai import EvaluationResult
from spanforge.conventions.genai_metrics import Metric
from spanforge.conventions.spans import Span
from spanforge.exceptions import MissingExtraError

try:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
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

__all__ = ["logs_request", "metrics_request", "rejected_spans", "trace_request"]

_KINDS: Final = {
    "INTERNAL": trace_pb2.Span.SPAN_KIND_INTERNAL,
    "CLIENT": trace_pb2.Span.SPAN_KIND_CLIENT,
}
_STATUSES: Final = {
    "unset": trace_pb2.Status.STATUS_CODE_UNSET,
    "ok": trace_pb2.Status.STATUS_CODE_OK,
    "error": trace_pb2.Status.STATUS_CODE_ERROR,
}
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


def _resource(source: str) -> Resource:
    name, _, version = source.partition("@")
    said: dict[str, AttributeValue] = {
        "service.name": name or "unknown_service",
        "telemetry.sdk.name": "spanforge",
        "telemetry.sdk.language": "python",
        "telemetry.sdk.version": __version__,
    }
    if version:
        said["service.version"] = version
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


def trace_request(by_source: Mapping[str, Iterable[Span]]) -> ExportTraceServiceRequest:
    """Return the request that sends these spans, by what emitted them."""
    return ExportTraceServiceRequest(
        resource_spans=[
            trace_pb2.ResourceSpans(
                resource=_resource(source),
                scope_spans=[trace_pb2.ScopeSpans(scope=_SCOPE, spans=[_span(span) for span in spans])],
            )
            for source, spans in by_source.items()
        ]
    )


def rejected_spans(answer: bytes) -> int:
    """Return how many spans a receiver says it refused; an answer that cannot be read refuses none."""
    try:
        return max(0, ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans)
    except DecodeError:
        return 0


def logs_request(source: str, results: Iterable[EvaluationResult]) -> ExportLogsServiceRequest:
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
    scoped = [ScopeLogs(scope=_SCOPE, log_records=records)]
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=_resource(source), scope_logs=scoped)])


def _metric(metric: Metric, start_ns: int, end_ns: int) -> pb.Metric:
    delta = pb.AGGREGATION_TEMPORALITY_DELTA
    if metric.bounds:
        points = [
            pb.HistogramDataPoint(
                attributes=_attributes(dict(point.attributes)),
                start_time_unix_nano=start_ns,
                time_unix_nano=end_ns,
                count=point.count,
                sum=point.total,
                bucket_counts=point.buckets,
                explicit_bounds=metric.bounds,
            )
            for point in metric.points
        ]
        histogram = pb.Histogram(data_points=points, aggregation_temporality=delta)
        return pb.Metric(name=metric.name, unit=metric.unit, description=metric.description, histogram=histogram)
    numbers = [
        pb.NumberDataPoint(
            attributes=_attributes(dict(point.attributes)),
            start_time_unix_nano=start_ns,
            time_unix_nano=end_ns,
            as_int=int(point.total),
        )
        for point in metric.points
    ]
    total = pb.Sum(data_points=numbers, aggregation_temporality=delta, is_monotonic=True)
    return pb.Metric(name=metric.name, unit=metric.unit, description=metric.description, sum=total)


def metrics_request(source: str, metrics: Sequence[Metric], start_ns: int, end_ns: int) -> ExportMetricsServiceRequest:
    """Return the request that sends what was measured between two moments."""
    scoped = [pb.ScopeMetrics(scope=_SCOPE, metrics=[_metric(metric, start_ns, end_ns) for metric in metrics])]
    return ExportMetricsServiceRequest(
        resource_metrics=[pb.ResourceMetrics(resource=_resource(source), scope_metrics=scoped)]
    )
