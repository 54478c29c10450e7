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
    assert (code, len(events), err) == (0, 5, "")
    assert {event["class_uid"] for event in events} == {6005}


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
    monkeypatch.setattr("spanforge.cli.export.datastore_events", lambda _session: [wrong])
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
    assert called(capsys, *arguments, str(out))[:2] == (0, "wrote out.tez\n")
    assert out.is_file()
    assert called(capsys, *arguments, f"{tmp_path / 'folder.tez'}/")[0] == 0
    assert (tmp_path / "folder.tez" / "manifest.json").is_file()


def test_otlp_sends_stored_sessions(stored: str, capsys):
    with http_receiver() as received:
        endpoint = ("--endpoint", f"http://{received.address}", "--header", "x-key=v")
        code, out, _ = called(capsys, "export", "otlp", "--from", stored, *endpoint)
        assert code == 0
        assert out.startswith("sent 23 of 23 events to otlp:127.0.0.1:")
        assert len(received.distinct_spans) == 27
        received.answers.append(status(503))
        code, out, err = called(capsys, "export", "otlp", "golden-plain", "--from", stored, *endpoint)
        assert (code, out[:16]) == (2, "sent 0 of 4 even")
        assert "http_503" in err


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
