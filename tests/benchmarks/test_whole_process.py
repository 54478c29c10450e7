"""What tracing to a file costs the whole process: the caller, the worker, and the writing."""

from __future__ import annotations

import time

import pytest
from support import otel_workload
from support.measuring import BLOCKS, CountingExporter, Side, compare, provider_of, show

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


def test_against_opentelemetry_sdk_with_a_json_file_exporter(ours, tmp_path):
    with (tmp_path / "spans.jsonl").open("w") as file:
        exporter = CountingExporter(lambda span: file.write(span.to_json(indent=None) + "\n"))
        provider = provider_of(exporter)
        tracer = provider.get_tracer("benchmark")
        theirs = Side(lambda: otel_workload.one_session(tracer), provider.force_flush)
        measured = compare(
            ours(f"jsonl:{tmp_path}/events.jsonl"), theirs, clock=time.process_time_ns, settle_counts=True
        )
        provider.shutdown()
    assert exporter.spans == otel_workload.SPANS * 200 * (BLOCKS + 1), "void: opentelemetry-sdk dropped spans"
    show(
        "Whole process, to a file",
        ("compared with", "ours, µs a session", "theirs, µs a session", "ratio", "promise"),
        [("opentelemetry-sdk, JSON lines", measured.ours, measured.theirs, measured.ratio, "≤ 0.7")],
    )
    assert measured.ratio <= 0.7
