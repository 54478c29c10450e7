"""`spanforge export`, as a person or a script calls it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.golden import VARIANTS
from support.otlp_receiver import http_receiver, status

from spanforge.cli import main
from spanforge.sinks.jsonl import JsonlSink
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import spans


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("stored") / "events.jsonl"
    sink = JsonlSink(path)
    for make in VARIANTS.values():
        sink.write(make())
    sink.close()
    return str(path)


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_ocsf_prints_a_valid_event_for_each_retrieval(stored: str, capsys):
    code, out, err = called(capsys, "export", "ocsf", "--from", stored, "--check")
    events = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert {event["class_uid"] for event in events} == {6005, 6003, 2004}


def test_ocsf_of_some_sessions_as_aitf_numbers_it(stored: str, capsys):
    code, out, _ = called(capsys, "export", "ocsf", "golden-plain", "golden-timeout", "--from", stored, "--aitf")
    assert code == 0
    assert [json.loads(line)["metadata"]["correlation_uid"] for line in out.splitlines()] == [
        "golden-plain",
        "golden-timeout",
    ]
    code, _, err = called(capsys, "export", "ocsf", "--from", stored, "--aitf", "--check")
    assert code == 2
    assert "check without --aitf" in err


def test_ocsf_says_what_is_wrong_without_repeating_it(stored: str, capsys, monkeypatch: pytest.MonkeyPatch):
    wrong = {"class_uid": "hunter2", "metadata": {"uid": "the-id"}}
    monkeypatch.setattr("spanforge.cli.export.security_events", lambda _session: [wrong])
    code, _, err = called(capsys, "export", "ocsf", "golden-plain", "--from", stored, "--check")
    assert code == 1
    assert "the-id: $.class_uid: " in err
    assert "hunter2" not in err


def test_checking_without_the_extra_says_which(stored: str, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ocsf_json_schema", None)
    code, _, err = called(capsys, "export", "ocsf", "--from", stored, "--check")
    assert code == 2
    assert "pip install 'spanforge[ocsf]'" in err


def test_transparency_prints_the_record_or_the_reason(stored: str, capsys):
    code, out, _ = called(capsys, "export", "transparency", "golden-rerank", "--from", stored)
    assert code == 0
    assert json.loads(out)["reranking_model"] == "cross-encoder/ms-marco"
    code, _, err = called(capsys, "export", "transparency", "golden-orphan", "--from", stored)
    assert (code, err) == (2, "spanforge: no transparency record: the session has no retrieval\n")


def test_tez_writes_a_file_or_a_folder(stored: str, tmp_path: Path, capsys):
    (tmp_path / "context").mkdir()
    (tmp_path / "context" / "handbook-1.md").write_text("one")
    out = tmp_path / "out.tez"
    arguments = ("export", "tez", "golden-rerank", "--from", stored, "--context", str(tmp_path / "context"))
    code, said, _ = called(capsys, *arguments, str(out))
    assert (code, said) == (0, "wrote out.tez\nchanged since it was retrieved: docs/handbook-1.md\n")
    assert out.is_file()
    code, said, _ = called(capsys, "read-record", str(out))
    assert code == 0
    assert json.loads(said)["extension_id"] == "com.ragu.retrieval-transparency"
    assert set(json.loads(said)["extension_ids"]) == {
        "com.ragu.retrieval-transparency",
        "tezit-retrieval-transparency",
    }
    assert json.loads(said)["record"]["chunks_retrieved"] == 3
    assert called(capsys, *arguments, f"{tmp_path / 'folder.tez'}/")[0] == 0
    assert (tmp_path / "folder.tez" / "manifest.json").is_file()


def test_otlp_sends_stored_sessions(stored: str, capsys):
    with http_receiver() as received:
        endpoint = ("--endpoint", f"http://{received.address}", "--header", "x-key=v")
        code, out, _ = called(capsys, "export", "otlp", "--from", stored, *endpoint)
        assert code == 0
        made = {name: make() for name, make in VARIANTS.items()}
        unsampled = len(made.pop("unsampled parent"))
        events = sum(map(len, made.values()))
        assert out.startswith(f"sent {events} of {events + unsampled} events to otlp:127.0.0.1:")
        assert out.endswith(f"{unsampled} kept back (otel_unsampled)\n")
        assert len(received.distinct_spans) == sum(len(spans(Session(each))) for each in made.values())
        received.answers.append(status(503))
        code, out, err = called(capsys, "export", "otlp", "golden-plain", "--from", stored, *endpoint)
        assert (code, out[:16]) == (2, "sent 0 of 4 even")
        assert "http_503" in err


def test_otlp_sends_spans_alone_unless_asked(stored: str, capsys):
    with http_receiver() as received:
        endpoint = ["--endpoint", f"http://{received.address}"]
        assert called(capsys, "export", "otlp", "--from", stored, *endpoint)[0] == 0
        assert {path for path, _, _ in received.requests} == {"/v1/traces"}
        both = ["--signals", "traces, logs,metrics"]
        assert called(capsys, "export", "otlp", "--from", stored, *endpoint, *both)[0] == 0
        assert {path for path, _, _ in received.requests} == {"/v1/traces", "/v1/logs", "/v1/metrics"}
        assert "gen_ai.client.inference.usage.input_tokens" in received.metrics


def test_otlp_says_that_metrics_were_refused(stored: str, capsys):
    with http_receiver() as received:
        received.answers.extend([status(200), status(400)])
        chosen = ["--endpoint", f"http://{received.address}", "--signals", "metrics"]
        code, out, err = called(capsys, "export", "otlp", "golden-plain", "--from", stored, *chosen)
    assert (code, "http_400" in err, out.startswith("sent 4 of 4")) == (2, True, True)


def test_otlp_names_a_signal_that_there_is_not(stored: str, capsys):
    code, _, err = called(capsys, "export", "otlp", "--from", stored, "--signals", "smoke")
    assert (code, "--signals" in err) == (2, True)


def test_otlp_says_what_the_receiver_refused(stored: str, capsys):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    refusal = ExportTraceServiceResponse()
    refusal.partial_success.rejected_spans = 1
    with http_receiver() as received:
        received.answers.append(status(200, refusal.SerializeToString()))
        endpoint = ("--endpoint", f"http://{received.address}")
        code, out, _ = called(capsys, "export", "otlp", "golden-plain", "--from", stored, *endpoint)
    assert code == 1
    assert "sent 3 of 4 events" in out
    assert "1 refused" in out


def test_otlp_headers_are_pairs_and_are_not_repeated(stored: str, capsys):
    code, _, err = called(capsys, "export", "otlp", "--from", stored, "--header", "hunter2")
    assert (code, err) == (2, "spanforge: --header: write NAME=VALUE\n")
