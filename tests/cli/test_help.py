"""The help: words for values, one name for one thing, and what holds where nothing is said."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from spanforge.cli import main

VERBS = (
    "demo", "sessions", "show", "tail", "verify", "rebuild", "read-record", "documents", "sources", "forget",
    "export ocsf", "export transparency", "export tez", "export otlp", "doctor", "ingest", "ask",
    "eval retrieval", "eval grounding", "tune", "report", "check", "ui", "serve", "keys add", "keys list",
    "keys revoke",
)  # fmt: skip
_METAVARS = {"--from": "PATH", "--home": "DIR", "--source": "NAME", "--port": "PORT"}
_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def help_of(verb: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*verb.split(), "--help"]) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")


@pytest.mark.parametrize("verb", VERBS)
def test_values_have_words_and_not_types(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(verb, capsys)
    assert not re.search(r"<(list|str|path|int|Path|dir|func|function|read)\b", text, re.IGNORECASE), text
    assert not re.search(r"\b(STR|TEXT|INTEGER|FUNC|READ)\b", text), text
    for option, metavar in _METAVARS.items():
        line = re.search(rf"^ *{option} (.*)$", text, re.MULTILINE)
        assert line is None or line[1].lstrip("<").startswith(metavar), text


@pytest.mark.parametrize("verb", VERBS)
def test_the_reference_names_every_option(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = _PAGE.read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ") and re.search(rf"`spanforge {verb}\b", row)]
    assert rows, verb
    shown = set(re.findall(r"^ *(--[a-z-]+)", help_of(verb, capsys), re.MULTILINE)) - {"--help", "--json"}
    # What several verbs take is told below the table.
    assert shown <= set(re.findall(r"--[a-z-]+", " ".join(rows) + page.rpartition(" |\n")[2])), verb


def test_the_list_of_verbs_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    listed = help_of("", capsys)
    assert "..." not in listed.partition("Commands")[2]
    assert all(re.search(rf"^ +{verb.split()[0]} ", listed, re.MULTILINE) for verb in VERBS)
    assert "--version" in listed


@pytest.mark.parametrize(
    ("verb", "defaults"), [("serve", ("127.0.0.1", "8000", "spanforge-server")), ("ui", ("8765",))]
)
def test_a_server_says_where_it_will_stand(
    verb: str, defaults: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    text = help_of(verb, capsys)
    assert all(default in text for default in defaults)


def test_the_version_is_told_behind_or_before_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split("--version")) == 0
    assert re.fullmatch(r"spanforge \d+\.\d+\.\d+\n", capsys.readouterr().out)


_WITHOUT = """
import sys
for name in {missing}:
    sys.modules[name] = None
from spanforge.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("verb", "missing", "extra"),
    [
        (["demo", "--docs", "x"], ["numpy"], "demo"),
        (["ingest", "x", "--help"], ["numpy"], "demo"),
        (["eval", "retrieval", "x"], ["numpy"], "demo"),
        (["sessions", "--from", "."], ["typer"], "cli"),
        (["serve", "--port", "0"], ["uvicorn"], "server"),
    ],
)
def test_a_verb_whose_packages_are_missing_names_its_extra(
    verb: list[str], missing: list[str], extra: str, tmp_path: Path
) -> None:
    done = without(missing, verb, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"spanforge: .+ needs the '{extra}' extra: pip install 'spanforge\[{extra}\]'\n", done.stderr)


def test_stored_events_are_read_without_what_answers_questions(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("")
    missing = ["numpy", "bm25s", "lancedb", "wordllama", "starlette", "fastapi", "uvicorn", "opentelemetry"]
    for verb in (["sessions", "--from", "events.jsonl"], ["tail", "--once", "--from", "events.jsonl"], ["--help"]):
        done = without(missing, verb, tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), verb


def without(missing: list[str], verb: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line where these packages cannot be imported."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", _WITHOUT.format(missing=missing), *verb],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
