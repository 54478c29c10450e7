"""Files that are damaged, or none at all: a sentence or a count, never a traceback, never what drives a terminal."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from spanforge.cli import main
from spanforge.sdk import sf_rag
from spanforge.sinks.jsonl import JsonlSink
from spanforge.testing import capture

Lines = list[dict[str, Any]]
SESSION = "the-session"
VERBS = (
    ["sessions"],
    ["show", SESSION],
    ["show", SESSION, "--json"],
    ["tail", "--once"],
    ["tail", "--once", "--json"],
    ["export", "ocsf"],
    ["export", "transparency", SESSION],
)
STRANGE: tuple[Any, ...] = ("x", "5", -1, 1e308, 10**400, [], {}, [1], True, None, "\x1b[2J", "[/]", "9" * 40)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    path = tmp_path_factory.mktemp("whole") / "events.jsonl"
    with capture(sinks=JsonlSink(path)):
        with sf_rag.session("q", session_id=SESSION, retriever_name="r") as session:
            with session.retrieval() as retrieval:
                retrieval.record([{"chunk_id": "a", "score": 23.7, "source": "s"}])
            with session.generation("m") as generation:
                generation.record(prompt_tokens=1, grounding_score=0.5, chunk_ids_used=["a"])
        sf_rag.flush()
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def changed(whole: Lines, change: Callable[[Lines], object]) -> str:
    lines = copy.deepcopy(whole)
    change(lines)
    return "".join(json.dumps(line) + "\n" for line in lines)


def damages(whole: Lines) -> Iterator[tuple[str, str]]:
    """Yield what was done to a file, and the file."""
    for number, line in enumerate(whole):
        for field in line["payload"]:
            for value in STRANGE:
                yield (
                    f"{line['event_type']} {field}={value!r:.20}",
                    changed(whole, lambda ls, n=number, f=field, v=value: ls[n]["payload"].update({f: v})),
                )
        for field in ("timestamp", "session_id", "event_type", "event_id", "tags", "payload"):
            for value in STRANGE:
                yield (
                    f"{line['event_type']}.{field}={value!r:.20}",
                    changed(whole, lambda ls, n=number, f=field, v=value: ls[n].update({f: v})),
                )
    chunk = next(line for line in whole if line["event_type"] == "llm.rag.retrieved")["payload"]["chunks"][0]
    for field in chunk:
        for value in STRANGE:
            yield (
                f"chunk {field}={value!r:.20}",
                changed(whole, lambda ls, f=field, v=value: ls[1]["payload"]["chunks"][0].update({f: v})),
            )
        yield f"chunk without {field}", changed(whole, lambda ls, f=field: ls[1]["payload"]["chunks"][0].pop(f))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("step", [16, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_a_file_that_says_anything_at_all_is_shown_or_counted(
    step: int, whole: Lines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # One verb for each damage: with thirteen damages to a field and seven verbs, each verb meets each field.
    for number, (what, text) in enumerate(islice(damages(whole), None, None, step)):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(text)
        verb = VERBS[number % len(VERBS)]
        code, out, err = run(capsys, *verb, "--from", str(path))
        assert code in {0, 2}, (what, verb, err)
        assert (code == 2) <= (err.count("\n") >= 1), (what, verb)
        assert "\x1b" not in out + err, (what, verb)
        assert "Traceback" not in err, (what, verb)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("\n\n", 0),
        ("no json\n", 2),
        ("\0\0\n", 2),
        ("[1]\n", 2),
        ("null\n", 2),
        ("[" * 100_000 + "\n", 2),
        ('{"a": ' + "9" * 6_000 + "}\n", 2),
    ],
    ids=["empty", "blank", "words", "nul", "list", "null", "deep", "digits"],
)
def test_a_file_without_any_event_has_none_or_is_none(
    verb: list[str], text: str, expected: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.jsonl").write_text(text)
    code, out, err = run(capsys, *verb, "--from", str(tmp_path / "events.jsonl"))
    assert code == (2 if SESSION in verb else expected)
    assert SESSION not in out
    assert err.count("\n") <= 2


def test_damaged_lines_are_counted_on_stderr(whole: Lines, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = changed(whole, lambda lines: lines[1]["payload"].update(chunks=5))
    (tmp_path / "events.jsonl").write_text(text + "torn {\n")
    code, out, err = run(capsys, "sessions", "--json", "--from", str(tmp_path / "events.jsonl"))
    assert (code, len(json.loads(out))) == (0, 1)
    assert "1 payload" in err
    code, out, _ = run(capsys, "tail", "--once", "--from", str(tmp_path / "events.jsonl"))
    assert (code, out.count(": damaged")) == (0, 1)


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (["sessions", "--from"], "--from"),
        (["show", SESSION, "--from"], "--from"),
        (["tail", "--once", "--from"], "--from"),
        (["ui", "--from"], "--from"),
        (["verify"], "FILE"),
        (["rebuild", "events.jsonl"], "OUT.parquet"),
        (["read-record"], "FILE"),
        (["demo", "--docs"], "--docs"),
        (["demo", "--out"], "--out"),
        (["ingest"], "PATH"),
        (["serve", "--home"], "--home"),
        (["keys", "list", "--home"], "--home"),
        (["eval", "retrieval"], "DIR"),
        (["eval", "grounding"], "FILE"),
    ],
)
def test_a_path_with_a_nul_is_one_sentence_that_names_it(
    verb: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, *verb, "a\0b") == (2, "", f"spanforge: {name}: no path has a NUL in it\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "folder"],
        ["verify", "nowhere.jsonl"],
        ["verify", "events.jsonl", "--key-file", "folder"],
        ["verify", "events.jsonl", "--key-file", "nowhere"],
        ["verify", "events.jsonl", "--key-file", "empty"],
        ["show", SESSION, "--from", "folder"],
        ["sessions", "--from", "\0"],
        ["sessions", "--from", "x" * 300],
        ["verify", "x" * 300],
        ["tail", "--once", "--from", "nowhere.jsonl"],
        ["ingest", "nowhere"],
        ["export", "ocsf", "--from", "nowhere.jsonl"],
        ["export", "otlp", "--from", "events.jsonl", "--endpoint", "no url"],
    ],
    ids=" ".join,
)
def test_what_is_no_file_of_events_is_one_sentence(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "events.jsonl").write_text("{}\n")
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert 1 <= err.count("\n") <= 4, err
    assert "Traceback" not in err


def test_a_pipe_that_knows_few_characters_gets_escapes(whole: Lines, tmp_path: Path) -> None:
    text = changed(whole, lambda lines: [line["payload"].update(retriever_name="ünïcödé → ✓") for line in lines])
    (tmp_path / "events.jsonl").write_text(text)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "spanforge", "sessions", "--from", "events.jsonl"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\xfcn\\xefc\\xf6d\\xe9" in done.stdout
