"""Metrics beside spans: measured before sampling, sent as totals or deltas, and accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from support.otlp_receiver import Received, http_receiver, status

from spanforge.metrics import MetricsSink, metrics_text
from spanforge.metrics.meter import PointLedger
from spanforge.sdk import SFRAGClient
from spanforge.sinks.memory import MemorySink
from spanforge.sinks.otlp import OtlpSink
from spanforge.sinks.spool import Spool

USED = "gen_ai.client.inference.usage.input_tokens"
CUMULATIVE, DELTA = 2, 1
Make = Callable[..., SFRAGClient]


@pytest.fixture
def receiver() -> Iterator[Received]:
    with http_receiver() as received:
        yield received


@pytest.fixture
def sink(receiver: Received) -> OtlpSink:
    return OtlpSink(f"http://{receiver.address}", signals=("metrics",))


def answer(client: SFRAGClient, tokens: int = 5, **more: Any) -> None:
    session_id = client.trace_query("q")
    client.trace_generation(session_id, "m", prompt_tokens=tokens, latency_ms=20, provider="p", **more)
    client.end_session(session_id)


def used(receiver: Received) -> list[Any]:
    """Return what arrived of the tokens used, in order."""
    return [
        (metric.sum.aggregation_temporality, point)
        for request in receiver.of(ExportMetricsServiceRequest)
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == USED
        for point in metric.sum.data_points
    ]


def ledger(client: SFRAGClient) -> PointLedger:
    (found,) = client.get_status().metrics.values()
    assert found.balanced
    return found


@pytest.mark.parametrize("preference", ["", "cumulative", "Cumulative"])
def test_totals_keep_their_start_and_never_fall(
    connect: Make, receiver: Received, monkeypatch: pytest.MonkeyPatch, preference: str
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", preference)
    client = connect(OtlpSink(f"http://{receiver.address}"))
    for _ in range(3):
        answer(client)
    client.shutdown()
    found = used(receiver)
    assert {temporality for temporality, _ in found} == {CUMULATIVE}
    assert len({point.start_time_unix_nano for _, point in found}) == 1
    sums = [point.as_int for _, point in found]
    assert (sums, sums[-1]) == (sorted(sums), 15)


@pytest.mark.parametrize("preference", ["delta", "lowmemory"])
def test_deltas_do_not_overlap_and_come_to_the_same(
    connect: Make, receiver: Received, monkeypatch: pytest.MonkeyPatch, preference: str
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", preference)
    client = connect(OtlpSink(f"http://{receiver.address}"))
    for _ in range(3):
        answer(client)
    client.shutdown()
    points = [point for temporality, point in used(receiver) if temporality == DELTA]
    assert [point.as_int for point in points] == [5, 5, 5]
    ends = [point.time_unix_nano for point in points]
    assert all(later.start_time_unix_nano >= end for later, end in zip(points[1:], ends, strict=False))


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_sampling_changes_no_figure(connect: Make, receiver: Received, sink: OtlpSink, rate: float):
    own, sample = MetricsSink(), MemorySink()
    client = connect(sink, own, sample, sample_rate=rate)
    for _ in range(60):
        answer(client, grounding_score=0.9)
    client.shutdown()
    assert used(receiver)[-1][1].as_int == 300
    page = metrics_text(client.get_status(), own)
    assert 'spanforge_tokens_total{type="input"} 300' in page
    assert 'spanforge_stages_total{stage="generation"} 60' in page
    assert "spanforge_grounding_score_count 60" in page
    assert 'spanforge_sessions_total{status="ok"} 60' in page
    assert sum(event.event_type == "llm.rag.generated" for event in sample.events) < 30


def test_what_a_full_queue_drops_is_measured_all_the_same(connect: Make):
    own = MetricsSink()
    client = connect(own, delivery="thread", queue_events=2, batch_delay_s=60.0)
    for _ in range(50):
        answer(client)
    assert client.get_status().sinks["metrics"].dropped["queue_full"]
    assert 'spanforge_tokens_total{type="input"} 250' in metrics_text(client.get_status(), own)


def test_metrics_that_are_refused_are_counted_and_an_alarm(connect: Make, receiver: Received, sink: OtlpSink):
    client = connect(sink, delivery="thread", batch_delay_s=0.0)
    receiver.answers.extend([status(200), status(400)])
    answer(client)
    client.flush()
    found = ledger(client)
    assert found.failed == found.accepted > 0
    assert (found.last_error, client.get_status().status) == ("http_400", "degraded")
    (events,) = client.get_status().sinks.values()
    assert (events.failed, events.lost) == (0, 0)


def test_points_refused_among_others_are_counted(connect: Make, receiver: Received, sink: OtlpSink):
    client = connect(sink, delivery="thread", batch_delay_s=0.0)
    refusal = ExportMetricsServiceResponse()
    refusal.partial_success.rejected_data_points = 2
    receiver.answers.extend([status(200), status(200, refusal.SerializeToString())])
    answer(client)
    client.flush()
    found = ledger(client)
    assert (found.failed, found.delivered, found.last_error) == (2, found.accepted - 2, "partial_success")


@pytest.mark.parametrize(
    "fault", [status(503), status(429, Retry_After="9"), status(200, b"<p>", Content_Type="text/html")]
)
def test_a_receiver_that_is_away_is_left_alone_and_loses_nothing(
    connect: Make, receiver: Received, sink: OtlpSink, fault: Callable[[Any], None]
):
    client = connect(sink)
    # Delivered in line: queries and generations go one by one, and only what measures something sends metrics.
    receiver.answers.extend([status(200), status(200), fault])
    answer(client)
    answer(client)
    assert (ledger(client).delivered, ledger(client).failed) == (0, 0)
    assert ledger(client).pending > 0
    client.shutdown()
    assert used(receiver)[-1][1].as_int == 10
    assert (ledger(client).pending, ledger(client).lost) == (0, 0)


def test_what_cannot_be_sent_at_the_end_is_given_up_and_counted(connect: Make, receiver: Received, sink: OtlpSink):
    client = connect(sink)
    receiver.answers.extend([status(200), status(200), status(503), status(200), status(503)])
    answer(client)
    client.shutdown()
    found = ledger(client)
    assert found.dropped == {"shutdown": found.accepted}
    assert found.lost > 0


def test_totals_are_repeated_though_nothing_changes(receiver: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
    sink = OtlpSink(f"http://{receiver.address}")
    sink.meter.record("llm.rag.generated", {"model": "m", "prompt_tokens": 5})
    moments = iter(range(100))
    monkeypatch.setattr("spanforge._clock.monotonic", lambda: float(next(moments)) + 1e9)
    sink.idle()
    sink.idle()
    sink.close()
    assert [point.as_int for _, point in used(receiver)] == [5, 5]


def test_a_spool_in_front_changes_no_figure(connect: Make, receiver: Received, sink: OtlpSink, tmp_path):
    client = connect(Spool(sink, tmp_path))
    answer(client)
    assert ledger(client).delivered > 0
    assert used(receiver)[-1][1].as_int == 5


def test_names_are_a_choice(receiver: Received):
    sink = OtlpSink(f"http://{receiver.address}", metric_names=("genai-earlier", "aitf"))
    sink.meter.record("llm.rag.generated", {"model": "m", "prompt_tokens": 5, "latency_ms": 7})
    sink.close()
    assert set(receiver.metrics) == {
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "aitf.latency.total_ms",
    }


def test_units_and_bounds_are_those_of_the_conventions(receiver: Received, sink: OtlpSink):
    sink.meter.record("llm.rag.generated", {"model": "m", "latency_ms": 850})
    sink.close()
    duration = receiver.metrics["gen_ai.client.inference.duration"]
    (point,) = duration.histogram.data_points
    assert (duration.unit, point.count, point.sum) == ("s", 1, 0.85)
    assert list(point.explicit_bounds)[:3] == [0.01, 0.02, 0.04]
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1


def test_a_child_begins_at_zero(sink: OtlpSink):
    sink.meter.record("llm.rag.generated", {"model": "m", "latency_ms": 850})
    sink.after_fork()
    assert sink.metric_points.accepted == 0
