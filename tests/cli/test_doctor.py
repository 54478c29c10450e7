"""`spanforge doctor` on addresses: the host is shown, what may be secret is not, and the variable to mend is named."""

from __future__ import annotations

import json

import pytest

from spanforge.cli import main
from spanforge.sdk import sf_rag
from spanforge.testing import capture


def doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, dict[str, str]], str]:
    with capture():  # what doctor configures goes with the test
        code = main(["doctor", "--json"])
        out, err = capsys.readouterr()
        sf_rag.shutdown(1)
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
