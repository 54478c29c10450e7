"""`spanforge doctor` on addresses: the host is shown, what may be secret is not, and the variable to mend is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spanforge import read_events
from spanforge.cli import main
from spanforge.sdk import sf_rag
from spanforge.testing import capture


def doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, str]], str]:
    code = main(["doctor", "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out), out + err


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("otlp:https://collector.example:4318/v1/hunter2", "otlp:https://collector.example:4318"),
        ("otlp:http://u:hunter2@127.0.0.1:9", "otlp:http://127.0.0.1:9"),
        ("otlp:http://[::1]:9?token=hunter2", "otlp:http://[::1]:9"),
        ("spool:later+otlp:http://127.0.0.1:9/hunter2", "spool:later+otlp:http://127.0.0.1:9"),
        ("otlp:http://u:hunter2/x@127.0.0.1", "otlp:hidden"),
        ("otlp:http://u:p#hunter2@127.0.0.1", "otlp:hidden"),
        ("kafka:hunter2@broker:9092/topic", "kafka:hidden"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(
    spec: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPANFORGE_SINKS", spec)
    monkeypatch.setenv("SPANFORGE_SANDBOX", "1")  # nothing is to be sent anywhere
    _, report, everything = doctor(capsys)
    assert report["settings"]["sinks"] == shown
    assert "hunter2" not in everything


@pytest.mark.parametrize(
    ("environment", "variable"),
    [
        ({"SPANFORGE_SINKS": "otlp:ftp://host"}, "SPANFORGE_SINKS"),
        ({"SPANFORGE_SINKS": "bogus:x"}, "SPANFORGE_SINKS"),
        ({"SPANFORGE_SINKS": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://host"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"SPANFORGE_SINKS": "otlp", "SPANFORGE_OTLP_PROTOCOL": "pigeon"}, "SPANFORGE_OTLP_PROTOCOL"),
    ],
)
def test_a_sink_that_cannot_be_made_names_the_variable_to_mend(
    environment: dict[str, str], variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, report, _ = doctor(capsys)
    assert code == 1
    assert variable in next(iter(report["sinks"]))
    assert report["settings"]["sinks"]


def test_a_setting_that_cannot_be_used_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPANFORGE_SAMPLE_RATE", "much")
    assert main(["doctor"]) == 2
    err = capsys.readouterr().err
    assert "SPANFORGE_SAMPLE_RATE" in err
    assert "much" not in err


def test_it_looks_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    specs = ("jsonl:a/b/events.jsonl", "sqlite:c/events.db", "ocsf:d/ocsf.jsonl", "spool:e+otlp:http://127.0.0.1:9")
    monkeypatch.setenv("SPANFORGE_SINKS", ",".join(specs))
    code, report, _ = doctor(capsys)
    assert list(tmp_path.iterdir()) == []
    assert [state == "ok" for state in report["sinks"].values()] == [True, True, True, False]
    assert code == 1


@pytest.mark.parametrize("spec", ["jsonl:taken/events.jsonl", "sqlite:taken/events.db"])
def test_a_place_that_cannot_be_written_to_is_named(
    spec: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setenv("SPANFORGE_SINKS", spec)
    code, report, _ = doctor(capsys)
    assert (code, list(report["sinks"].values())) == (1, ["NotADirectoryError"])


def test_on_request_it_sends_a_session_that_says_whose_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SPANFORGE_SINKS", f"jsonl:{tmp_path}/events.jsonl")
    with capture():  # what doctor configures goes with the test
        code = main(["doctor", "--send", "--json"])
        sf_rag.shutdown(1)
    assert code == 0
    assert json.loads(capsys.readouterr().out)["sinks"] == {"jsonl:events.jsonl": "ok"}
    sent = list(read_events(tmp_path / "events.jsonl"))
    assert len(sent) == 2
    assert {event.tags["spanforge_doctor"] for event in sent} == {"true"}


@pytest.mark.parametrize(("setting", "words"), [("0", "not handled"), ("1", "delivers first")])
def test_it_says_what_becomes_of_sigterm(
    setting: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPANFORGE_HANDLE_SIGTERM", setting)
    monkeypatch.setenv("SPANFORGE_SINKS", "memory")
    _, report, _ = doctor(capsys)
    assert words in report["hosts"]["SIGTERM"]


def test_it_names_what_changes_how_a_process_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "joblib.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SPANFORGE_SINKS", "memory")
    _, report, _ = doctor(capsys)
    assert "flush()" in report["hosts"]["joblib"]
