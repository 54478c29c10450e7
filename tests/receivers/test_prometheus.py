"""A real Prometheus: it scrapes our page, and takes totals by OTLP where it has a receiver for them (from 2.47)."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.faulty_sinks import Scripted

from spanforge.metrics import CONTENT_TYPE, MetricsSink, metrics_text
from spanforge.sdk import SFRAGClient
from spanforge.sinks.otlp import OtlpSink

pytestmark = pytest.mark.slow

_PATIENCE_S = 60.0
_ALERTS = Path(__file__).parents[2] / "docs" / "examples" / "alerts.yml"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    """A running server.

    Args:
        folder: For its data and configuration.
        target: What it scrapes, as host and port.
        rules: A file of rules, evaluated each second.
    """

    def __init__(self, folder: Path, target: str, rules: Path | None = None) -> None:
        found = shutil.which("prometheus") or pytest.skip("Prometheus is not installed")
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
        major, minor = re.search(r"version (\d+)\.(\d+)", said.stdout + said.stderr).groups()
        self.takes_otlp = (int(major), int(minor)) >= (2, 47)
        receiver = "--web.enable-otlp-receiver" if int(major) > 2 else "--enable-feature=otlp-write-receiver"
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            f"rule_files: [{'' if rules is None else rules}]\n"
            f"scrape_configs: [{{job_name: ours, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        self.url = f"http://127.0.0.1:{_free_port()}"
        self._process = subprocess.Popen(
            [
                found,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
                *([receiver] if self.takes_otlp else []),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def value(self, query: str) -> float | None:
        """Return the value of a query; None as long as there is none."""
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310  our own server
                found: Any = json.load(answer)["data"]["result"]
        except (OSError, urllib.error.URLError):
            return None
        return float(found[0]["value"][1]) if found else None

    def wait_for(self, query: str, wanted: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        until = time.monotonic() + _PATIENCE_S
        while (value := self.value(query)) != wanted:
            assert time.monotonic() < until, f"{query}: {value}, not {wanted}"
            meanwhile()
            time.sleep(0.2)


@pytest.fixture
def page() -> Iterator[list[Callable[[], str]]]:
    """Serve what the list's function returns; its address is `page.address`."""
    shown: Any = type("Page", (list,), {})()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = shown[-1]().encode() if shown else b""
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class calls it so
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    shown.address = f"127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield shown
    server.shutdown()
    server.server_close()


@pytest.fixture
def prometheus(tmp_path: Path, page: Any) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path, page.address)
    yield server
    server.stop()


def _answer(client: SFRAGClient, **generation: Any) -> None:
    session_id = client.trace_query("q")
    client.trace_generation(session_id, "m", **{"prompt_tokens": 5, "latency_ms": 20, "provider": "p", **generation})
    client.end_session(session_id)


def _hastened(rules: Path, folder: Path) -> Path:
    """Write rules that look at seconds where the documented ones look at minutes, and wait for nothing."""
    text = re.sub(r"\[\d+m\]", "[10s]", re.sub(r"\n +for: \d+m", "", rules.read_text()))
    (folder / "alerts.yml").write_text(text)
    return folder / "alerts.yml"


def test_it_scrapes_what_was_traced_whatever_is_sampled(prometheus: Prometheus, page: Any, connect: Any):
    metrics = MetricsSink()
    client = connect(metrics, sample_rate=0.0)
    page.append(lambda: metrics_text(client.get_status(), metrics))
    for _ in range(3):
        _answer(client)
    prometheus.wait_for('spanforge_tokens_total{type="input"}', 15)
    prometheus.wait_for('spanforge_stage_duration_seconds_bucket{stage="generation",le="0.025"}', 3)


def test_it_takes_totals_by_otlp(prometheus: Prometheus, connect: Any):
    if not prometheus.takes_otlp:
        pytest.skip("this Prometheus has no OTLP receiver: it takes 2.47")
    prometheus.wait_for("vector(1)", 1)
    sink = OtlpSink(f"{prometheus.url}/api/v1/otlp", signals=("metrics",))
    # It takes metrics alone, so spans stay here.
    sink.write = lambda _events: sink.idle()  # type: ignore[method-assign]
    client = connect(sink)
    for _ in range(3):
        _answer(client)
    client.shutdown()
    assert not client.get_status().metrics[sink.name].lost
    prometheus.wait_for("sum(gen_ai_client_inference_usage_input_tokens_total)", 15)


def test_the_alerts_of_the_docs_fire_when_they_should_and_not_before(tmp_path: Path, page: Any, connect: Any):
    metrics, refusing = MetricsSink(), Scripted()
    client = connect(metrics, refusing)
    page.append(lambda: metrics_text(client.get_status(), metrics))
    server = Prometheus(tmp_path, page.address, _hastened(_ALERTS, tmp_path))
    try:
        server.wait_for(
            "sum(rate(spanforge_sessions_total[5s])) > bool 0", 1, lambda: _answer(client, grounding_score=0.9)
        )
        assert server.value("ALERTS") is None
        refusing.script = [ValueError("refused")] * 10_000
        bad = {"status": "error", "grounding_score": 0.2, "latency_ms": 9_000}
        for name in ("SpanforgeEventsFailed", "RagSessionsFail", "RagAnswersBarelyGrounded", "RagStageSlow"):
            firing = f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) > bool 0'
            server.wait_for(firing, 1, lambda: _answer(client, **bad))
        server.wait_for('count(ALERTS{alertname="RagSilent", alertstate="firing"})', 1)
    finally:
        server.stop()
