"""What reading verbs are pointed at: what is no file of events is refused, by the name of what pointed there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spanforge.cli import main
from spanforge.sdk import sf_rag
from spanforge.testing import capture

READING = (
    ["sessions"],
    ["show", "x"],
    ["tail", "--once"],
    ["tail"],
    ["export", "ocsf"],
    ["export", "otlp"],
    ["export", "transparency", "x"],
)
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\n\x08\x02\xff\xfe"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "picture.png").write_bytes(_PNG)
    (tmp_path / "app.db").write_bytes(b"SQLite format 3\0" + bytes(1000))
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Call a verb that must refuse, and return its one sentence."""
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert err.startswith("spanforge: ")
    assert err.count("\n") == 1
    return err.removeprefix("spanforge: ")


@pytest.mark.parametrize("verb", READING, ids=" ".join)
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("https://example.org/events.jsonl", "not an address"),
        ("picture.png", "no event is in there"),
        ("app.db", "no event is in there"),
    ],
)
def test_what_is_no_place_of_events_is_refused_by_the_options_name(
    verb: list[str], source: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = refused(capsys, *verb, "--from", source)
    assert sentence.startswith("--from: ")
    assert says in sentence
    assert "example.org" not in sentence


@pytest.mark.parametrize("verb", [verb for verb in READING if verb != ["tail"]], ids=" ".join)
@pytest.mark.parametrize(
    ("source", "says"),
    [("empty", "no file of events is in this folder"), ("nowhere", "nothing at this path"), ("*.jsonl", "nothing at")],
)
def test_where_nothing_is_stored_is_no_empty_list(
    verb: list[str], source: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(capsys, *verb, "--from", source)


@pytest.mark.parametrize("verb", [["sessions"], ["tail"], ["ui"]], ids=" ".join)
@pytest.mark.parametrize("source", ["memory://a-bucket/events.jsonl", "carrier-pigeon://a-bucket/events.jsonl"])
def test_a_url_that_leads_nowhere_is_not_repeated(
    verb: list[str], source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = refused(capsys, *verb, "--from", source)
    assert sentence.startswith("--from: ")
    assert "a-bucket" not in sentence


@pytest.mark.parametrize("source", ["empty", "*.jsonl", "events.jsonl.gz"])
def test_what_does_not_grow_is_not_followed(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--once" in refused(capsys, "tail", "--from", source)


def test_a_source_of_the_settings_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPANFORGE_SINKS", "jsonl:later.jsonl")
    assert refused(capsys, "sessions").startswith("SPANFORGE_SINKS: nothing is written there yet")
    monkeypatch.setenv("SPANFORGE_SINKS", "jsonl:picture.png")
    assert refused(capsys, "sessions").startswith("SPANFORGE_SINKS: no event is in there")


def test_who_waits_for_a_file_is_told(folder: Path) -> None:
    waiting = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "spanforge", "tail", "--from", "later.jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONUNBUFFERED": "1"},
        text=True,
    )
    try:
        assert waiting.stderr.readline() == "waiting for later.jsonl\n"
        with capture(sinks="jsonl:later.jsonl"):
            sf_rag.end_session(sf_rag.trace_query("q", session_id="the-session"))
        assert "the-session" in waiting.stdout.readline()
    finally:
        waiting.kill()
        waiting.communicate()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["ask", ""], "QUESTION"),
        (["ask", " \n"], "QUESTION"),
        (["ask", "q", "--home", ""], "--home"),
        (["ask", "q", "--source", ""], "--source"),
        (["ask", "q", "--trace", ""], "--trace"),
        (["demo", "--docs", ""], "--docs"),
        (["demo", "--ask", ""], "--ask"),
        (["demo", "--out", ""], "--out"),
        (["demo", "--out", "picture.png"], "--out"),
        (["ingest", ""], "PATH"),
        (["ingest", "empty", "--home", "picture.png"], "--home"),
        (["ingest", "empty", "--chunk-size", "9", "--chunk-overlap", "9"], "--chunk-overlap"),
        (["ingest", "https://example.org/a.pdf"], "PATH"),
        (["show", "", "--from", "picture.png"], "SESSION"),
        (["verify", ""], "FILE"),
        (["verify", "picture.png", "--expect-last", ""], "--expect-last"),
        (["eval", "retrieval", ""], "DIR"),
        (["eval", "grounding", ""], "FILE"),
        (["export", "tez", "x", "", "--from", "picture.png"], "OUT.tez"),
        (["export", "tez", "x", "o.tez", "--context", ""], "--context"),
        (["export", "tez", "x", "o.tez", "--context", "nowhere"], "--context"),
        (["export", "otlp", "--endpoint", "no url", "--from", "picture.png"], "--endpoint"),
        (["serve", "--home", ""], "--home"),
        (["serve", "--home", "picture.png"], "--home"),
        (["serve", "--port", "99999"], "--port"),
        (["keys", "add", "--org", "o", "--user", "u", "--home", "picture.png"], "--home"),
        (["keys", "list", "--home", ""], "--home"),
        (["ui", "picture.png", "--from", "picture.png"], "--from"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_cannot_be_meant_is_refused_by_name(
    arguments: list[str], name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.iterdir())
    assert refused(capsys, *arguments).startswith(f"{name}: ")
    assert sorted(folder.iterdir()) == before


def test_a_sink_to_trace_to_that_is_none_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.md").write_text("The depot in Lund opens at six in the morning.\n")
    assert main(["ingest", "notes.md"]) == 0
    capsys.readouterr()
    assert refused(capsys, "ask", "When?", "--trace", "bogus:x").startswith("--trace: ")
