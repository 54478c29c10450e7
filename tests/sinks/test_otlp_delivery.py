"""The OTLP sink at work: through queue, gathering and worker, against a receiver that misbehaves."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.otlp_receiver import (
    Received,
    grpc_receiver,
    half_an_answer,
    hang,
    hang_up,
    http_receiver,
    status,
)
from support.trickling import trickling

from spanforge._warnings import settle
from spanforge.delivery.ledger import SinkLedger
from spanforge.exceptions import SinkWriteError
from spanforge.sdk import SFClientConfig, SFRAGClient
from spanforge.sinks._endpoint import parse_endpoint
from spanforge.sinks._otlp_http import HttpTransport
from spanforge.sinks.otlp import OtlpSink
from spanforge.sinks.spool import Spool


@pytest.fixture
def client():
    client = SFRAGClient(SFClientConfig())
    yield client
    client.shutdown()


def configure(client: SFRAGClient, sink: object) -> None:
    client.configure(sinks=[sink], batch_delay_s=0.01, backoff_s=0.01, max_backoff_s=0.1)


def run(client: SFRAGClient, number: int = 0) -> str:
    session_id = client.trace_query("q", retriever_name="docs", pipeline_name="p", session_id=f"run-{number}")
    client.trace_retrieval(session_id, [{"id": "a", "score": 0.9}], latency_ms=5.0)
    client.trace_generation(session_id, "m", chunk_ids_used=["a"], latency_ms=20.0)
    client.end_session(session_id)
    return session_id


def ledger(client: SFRAGClient) -> SinkLedger:
    (found,) = client.get_status().sinks.values()
    assert found.balanced
    return found


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nserver: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"]
)
def test_an_answer_that_trickles_is_given_up(head: bytes):
    with trickling(head, b"a") as url:
        endpoint = parse_endpoint(url, "endpoint")
        transport = HttpTransport(endpoint, None, {}, timeout_s=0.2, certificate="", compress=False)
        with pytest.raises(SinkWriteError, match="TimeoutError"):
            transport.send("traces", b"")


def test_sessions_arrive_whole_in_one_request(client: SFRAGClient):
    with http_receiver() as received:
        configure(client, OtlpSink(f"http://{received.address}", signals=()))
        run(client)
        assert client.flush(10) == 0
        assert len(received.requests) == 1
        assert {span.name for span in received.spans} == {
            "rag.pipeline p",
            "rag.query p",
            "rag.retrieve docs",
            "chat m",
        }
        assert ledger(client).delivered == 4


def test_an_open_session_is_pending_until_it_ends_or_a_flush_asks_for_it(client: SFRAGClient):
    with http_receiver() as received:
        configure(client, OtlpSink(f"http://{received.address}", signals=()))
        session_id = client.trace_query("q")
        time.sleep(0.2)
        assert received.requests == []
        assert ledger(client).pending == 1
        assert client.flush(10) == 0
        assert len(received.spans) == 1
        client.end_session(session_id)
        assert client.flush(10) == 0
        root = next(span for span in received.spans if not span.parent_span_id)
        assert {span.parent_span_id for span in received.spans if span is not root} == {root.span_id}


@pytest.mark.parametrize(
    "faults",
    [
        [status(500), status(503), status(502)],
        [status(429, Retry_After="0")],
        [hang_up, half_an_answer],
        [hang(0.4)],
        [status(413)],
    ],
)
def test_a_receiver_that_recovers_gets_everything_once(client: SFRAGClient, faults: list):
    with http_receiver() as received:
        configure(client, OtlpSink(f"http://{received.address}", signals=(), timeout_s=0.3))
        received.answers.extend(faults)
        for number in range(5):
            run(client, number)
        assert client.flush(20) == 0
        found = ledger(client)
        assert (found.delivered, found.failed, found.pending) == (20, 0, 0)
        assert len(received.distinct_spans) == 20


@pytest.mark.parametrize("refusal", [status(400), status(401), status(302, Location="http://127.0.0.1:9/")])
def test_a_receiver_that_refuses_costs_the_events_and_is_said_once(
    client: SFRAGClient, refusal, caplog: pytest.LogCaptureFixture
):
    with http_receiver() as received:
        configure(client, OtlpSink(f"http://{received.address}", signals=()))
        received.answers.extend([refusal] * 200)
        with caplog.at_level(logging.WARNING, logger="spanforge"):
            for number in range(5):
                run(client, number)
            client.flush(10)
        settle(5)
        found = ledger(client)
        assert found.accepted == 20
        assert found.delivered == 0
        assert found.last_error.startswith("http_")
        assert len(caplog.records) <= 1


def test_a_receiver_that_is_away_does_not_slow_the_caller(client: SFRAGClient, spooled: Received):
    started = time.perf_counter()
    for number in range(50):
        run(client, number)
    assert time.perf_counter() - started < 5
    deadline = time.monotonic() + 20
    while ledger(client).delivered < 200 and time.monotonic() < deadline:
        client.flush(0.5)
        time.sleep(0.1)
    assert ledger(client).delivered == 200
    assert len(spooled.distinct_spans) == 200


@pytest.fixture
def spooled(client: SFRAGClient, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("spanforge.sinks.spool._FIRST_REST_S", 0.05)
    with http_receiver() as received:
        received.answers.extend([status(503)] * 5)
        configure(client, Spool(OtlpSink(f"http://{received.address}", signals=()), tmp_path))
        yield received
        client.shutdown()


@pytest.mark.parametrize(("protocol", "receiver"), [("http/protobuf", http_receiver), ("grpc", grpc_receiver)])
def test_parent_and_child_of_a_fork_both_deliver(protocol: str, receiver):
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests.parent)])
    with receiver() as received:
        command = [sys.executable, str(tests / "support" / "otlp_fork.py"), f"http://{received.address}", protocol]
        subprocess.run(command, check=True, timeout=60, env={**os.environ, "PYTHONPATH": path})
        sessions = {
            pair.value.string_value for s in received.spans for pair in s.attributes if pair.key == "session.id"
        }
    assert sessions == {"parent", "parent-after", "child"}
    assert len(received.distinct_spans) == 9
