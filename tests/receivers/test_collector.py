"""Rotel, a collector, takes spans, evaluation results and totals by both protocols and passes them on unchanged."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from support.golden import VARIANTS, measure
from support.otlp_receiver import Received, http_receiver

from spanforge.sinks.otlp import OtlpSink

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SENT = [name for name in VARIANTS if name != "unsampled parent"]
_PATIENCE_S = 30.0


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def _agent() -> str:
    folder = Path(os.environ.get("RECEIVERS", "")) / "rotel"
    found = next(folder.glob("lib/python*/site-packages/rotel/rotel-agent"), None)
    return str(found) if found else pytest.skip("rotel is not installed under the folder that RECEIVERS names")


def _until(done: Callable[[], Any]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not done():
        assert time.monotonic() < until, "the collector passed nothing on"
        time.sleep(0.1)


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


@dataclass
class Collector:
    """A running collector, and what it has passed on."""

    http: str
    grpc: str
    passed: Received


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with http_receiver() as passed:
        running = Collector(_free_address(), _free_address(), passed)
        command = [_agent(), "start", "--otlp-http-endpoint", running.http, "--otlp-grpc-endpoint", running.grpc]
        command += ["--exporter", "otlp", "--otlp-exporter-protocol", "http", "--disable-batching"]
        command += ["--otlp-exporter-endpoint", f"http://{passed.address}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _until(lambda: _listens(running.http) and _listens(running.grpc))
            yield running
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_what_a_collector_passes_on_is_what_was_sent(collector: Collector, protocol: str):
    collector.passed.requests.clear()
    with http_receiver() as direct:
        through = f"http://{collector.http if protocol != 'grpc' else collector.grpc}"
        for endpoint, chosen in ((f"http://{direct.address}", "http/protobuf"), (through, protocol)):
            sink = OtlpSink(endpoint, protocol=chosen)
            for variant in SENT:
                measure(sink, variant)
                assert sink.write(VARIANTS[variant]()) is None
            sink.close()
            assert sink.metric_points is not None
            assert not sink.metric_points.lost
        passed = collector.passed
        _until(lambda: len(passed.spans) == len(direct.spans) and len(passed.logs) == len(direct.logs))
        _until(lambda: _totals(passed) == _totals(direct) != {})
        assert _sorted(passed.spans) == _sorted(direct.spans)
        assert _sorted(passed.logs) == _sorted(direct.logs)


def _totals(received: Received) -> dict[str, list[tuple[Any, ...]]]:
    """Return what was measured in all, by metric, whenever it was sent."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for name, metric in received.metrics.items():
        data = metric.histogram if metric.HasField("histogram") else metric.sum
        assert data.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
        for point in data.data_points:
            labels = tuple(sorted((label.key, label.value.string_value) for label in point.attributes))
            said = (point.as_int,) if metric.HasField("sum") else (point.sum, *point.bucket_counts)
            found.setdefault(name, []).append((labels, said))
    return {name: sorted(points) for name, points in found.items()}


def _sorted(messages: list[Any]) -> list[bytes]:
    return sorted(message.SerializeToString(deterministic=True) for message in messages)
