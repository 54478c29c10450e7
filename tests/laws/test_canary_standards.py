"""No raw text in any standard, sink or export: what goes out is searched for what went in, in every form."""

from __future__ import annotations

import json
import logging
import secrets
import zipfile
from pathlib import Path

import pytest
from support.otlp_receiver import http_receiver
from support.renditions import RENDITIONS

from spanforge._warnings import settle
from spanforge.exceptions import SinkWriteError
from spanforge.metrics import MetricsSink, metrics_text
from spanforge.namespaces.event import Event
from spanforge.sdk import sf_feedback, sf_rag
from spanforge.sdk.propagation import inject
from spanforge.sinks.ocsf import OcsfSink
from spanforge.sinks.otlp import OtlpSink
from spanforge.sinks.spool import Spool
from spanforge.standards.tez_bundle import write_bundle
from spanforge.standards.tree.session import Session
from spanforge.testing import capture, find_canary

QUERY = f"canary query {secrets.token_hex(12)} Ä"
DOCUMENT = f"canary document {secrets.token_hex(12)} Ä"
ERROR = f"canary error {secrets.token_hex(12)} Ä"
COMMENT = f"canary comment {secrets.token_hex(12)} Ä"
CANARIES = (QUERY, DOCUMENT, ERROR, COMMENT)


def assert_clean(content: str | bytes, where: str) -> None:
    for canary in CANARIES:
        assert find_canary(canary, content) == [], where


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """A session whose every free-text input carries a canary."""
    with capture(strict=False) as captured:
        session_id = sf_rag.trace_query(QUERY, retriever_name="docs", filters={"year": 2026, "text": QUERY})
        sf_rag.trace_retrieval(
            session_id,
            [
                {
                    "id": "a",
                    "score": 0.9,
                    "content": DOCUMENT,
                    "content_hash": DOCUMENT,
                    "metadata": {"text": DOCUMENT},
                },
                (DOCUMENT, 0.5),
            ],
            query_hash=QUERY,
            status="error",
            error_message=ERROR,
            retrieval_strategy="single_pass",
            ranking_method="cosine",
            ceiling_reached=ERROR,
        )
        sf_rag.trace_generation(session_id, "m", status="error", error_message=ERROR, chunk_ids_used=["a"])
        sf_rag.trace_evaluation(session_id, groundedness=0.5)
        sf_rag.end_session(session_id)
        sf_feedback.submit(session_id, "thumbs_down", comment=COMMENT)
        found = captured.all
    assert {event.event_type for event in found} >= {"llm.rag.retrieved", "llm.rag.session", "llm.feedback.submitted"}
    return found


@pytest.mark.parametrize("standard", RENDITIONS)
def test_no_standard_says_it(standard: str, events: list[Event]):
    rendered = RENDITIONS[standard](Session(events))
    assert rendered
    assert_clean(json.dumps(rendered, ensure_ascii=False, default=repr), standard)


def test_no_request_carries_it(events: list[Event], caplog: pytest.LogCaptureFixture):
    with http_receiver() as received, caplog.at_level(logging.DEBUG):
        sink = OtlpSink(f"http://{received.address}", genai_documents=True)
        sink.write(events)
        sink.close()
        assert len(received.requests) >= 2
        for path, headers, message in received.requests:
            assert_clean(message.SerializeToString() + repr(headers).encode(), path)
    settle(5)
    assert_clean(caplog.text, "log")
    assert_clean(repr(sink), "repr")


def test_no_file_holds_it(events: list[Event], tmp_path: Path):
    for flavour in ("ocsf", "ocsf-aitf"):
        sink = OcsfSink(tmp_path / flavour, flavour=flavour)
        sink.write(events)
        sink.close()
    write_bundle(Session(events), tmp_path / "bundle.tez")
    with zipfile.ZipFile(tmp_path / "bundle.tez") as archive:
        archive.extractall(tmp_path / "bundle")
    spool = Spool(OtlpSink("http://127.0.0.1:9"), tmp_path / "spool")
    spool.write(events)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 7
    for path in files:
        assert_clean(path.read_bytes(), path.name)


def test_no_error_repeats_it(events: list[Event]):
    with pytest.raises(SinkWriteError) as caught:
        OtlpSink("http://127.0.0.1:9").write(events)
    assert_clean(repr(caught.value), "error")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_no_metric_or_header_says_it(events: list[Event]):
    metrics = MetricsSink()
    for event in events:
        metrics.meter.record(event.event_type, event.payload)
    assert_clean(metrics_text(sf_rag.get_status(), metrics), "metrics")
    headers: dict[str, str] = {}
    inject(headers, events[0].session_id)
    assert_clean(repr(headers), "headers")
