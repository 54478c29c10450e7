from __future__ import annotations

import os
import re
import sys
from importlib import import_module

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from support.golden import QUERY_HASH, VARIANTS

from spanforge.delivery.ledger import SinkLedger
from spanforge.exceptions import MissingExtraError
from spanforge.integrations.prometheus import SpanforgeCollector
from spanforge.metrics import MetricsSink, PointLedger, families, metrics_text
from spanforge.sdk import sf_rag
from spanforge.sdk.rag import RAGStatusInfo
from spanforge.testing import capture


@pytest.fixture
def metrics() -> MetricsSink:
    sink = MetricsSink()
    for name in ("plain", "rerank", "evaluation", "error", "timeout", "orphan"):
        for event in VARIANTS[name]():
            sink.meter.record(event.event_type, event.payload)
    return sink


@pytest.fixture
def status() -> RAGStatusInfo:
    ledger = SinkLedger(accepted=10, delivered=6, failed=1, dropped={"queue_full": 2}, pending=1)
    points = PointLedger(accepted=9, delivered=6, failed=2, dropped={}, pending=1)
    return RAGStatusInfo(
        "ok", 3, 4, 5, {'otlp:a"\\\nb': ledger}, orphans=1, replaced={"score": 2}, metrics={"otlp": points}
    )


def samples(text: str) -> dict[tuple, float]:
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_text_is_what_prometheus_reads(metrics: MetricsSink, status: RAGStatusInfo):
    found = samples(metrics_text(status, metrics))
    sink = ("sink", 'otlp:a"\\\nb')
    assert found["spanforge_events_accepted_total", sink] == 10
    assert found["spanforge_events_delivered_total", sink] == 6
    assert found["spanforge_events_failed_total", sink] == 1
    assert found["spanforge_events_dropped_total", ("reason", "queue_full"), sink] == 2
    assert found["spanforge_events_pending", sink] == 1
    assert found["spanforge_metric_points_failed_total", ("sink", "otlp")] == 2
    assert found["spanforge_sessions_open",] == 3
    assert found["spanforge_orphans_total",] == 1
    assert found["spanforge_inputs_replaced_total", ("reason", "score")] == 2
    assert found["spanforge_stage_duration_seconds_count", ("stage", "generation")] == 5
    assert found["spanforge_stage_duration_seconds_bucket", ("le", "1"), ("stage", "generation")] == 5
    assert found["spanforge_stage_duration_seconds_bucket", ("le", "0.5"), ("stage", "generation")] == 0
    assert found["spanforge_stage_duration_seconds_bucket", ("le", "+Inf"), ("stage", "retrieval")] == 5
    assert found["spanforge_stage_duration_seconds_sum", ("stage", "generation")] == pytest.approx(5 * 0.85)
    assert found["spanforge_grounding_score_count",] == 4
    assert found["spanforge_tokens_total", ("type", "input")] == 12_500
    assert found["spanforge_errors_total", ("stage", "retrieval"), ("status", "timeout")] == 1
    assert found["spanforge_errors_total", ("stage", "generation"), ("status", "error")] == 1
    assert found["spanforge_sessions_total", ("status", "error")] == 2


def test_buckets_add_up_and_never_shrink(metrics: MetricsSink, status: RAGStatusInfo):
    for family in families(status, metrics):
        if family.kind == "histogram":
            buckets = [
                value
                for suffix, labels, value in family.samples
                if suffix == "_bucket" and labels.get("stage", "query") == "query"
            ]
            assert buckets == sorted(buckets)


def test_no_label_is_a_session_a_digest_or_a_model(metrics: MetricsSink, status: RAGStatusInfo):
    text = metrics_text(status, metrics)
    assert "golden" not in text
    assert QUERY_HASH not in text
    assert "gpt" not in text


def test_without_a_metrics_sink_there_are_the_ledger_and_the_sessions(status: RAGStatusInfo):
    text = metrics_text(status)
    assert "spanforge_events_accepted_total" in text
    assert "spanforge_tokens" not in text


def test_the_collector_says_the_same_as_the_text():
    metrics = MetricsSink()
    registry = CollectorRegistry()
    registry.register(SpanforgeCollector(metrics))
    with capture(sinks=[metrics]):
        session_id = sf_rag.trace_query("q")
        sf_rag.trace_generation(session_id, "m", prompt_tokens=7)
        sf_rag.end_session(session_id)
        own = samples(metrics_text(sf_rag.get_status(), metrics))
        scraped = samples(generate_latest(registry).decode())
    assert own == {key: value for key, value in scraped.items() if not key[0].endswith("_created")}
    assert own["spanforge_tokens_total", ("type", "input")] == 7


def test_a_child_begins_at_zero(metrics: MetricsSink):
    pid = os.fork()
    if not pid:
        metrics.after_fork()
        os._exit(0 if not metrics.meter.snapshot().points else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert metrics.meter.snapshot().points
    metrics.after_fork()
    assert not metrics.meter.snapshot().points


def test_every_name_is_one_prometheus_takes(metrics: MetricsSink, status: RAGStatusInfo):
    for family in families(status, metrics):
        assert re.fullmatch(r"spanforge_[a-z_]+", family.name)


def test_the_collector_without_the_extra_says_which(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "spanforge.integrations.prometheus")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'spanforge\[prometheus\]'"):
        import_module("spanforge.integrations.prometheus")
