"""`spanforge verify` on what never had a chain: it says what the file is, and does not cry tampering."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from spanforge.cli import main
from spanforge.sdk import sf_rag
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink
from spanforge.testing import capture

_KEY = "a signing key of more than thirty-two bytes"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPANFORGE_SIGNING_KEY", raising=False)
    sinks = [JsonlSink("plain.jsonl"), JsonlSink("chained.jsonl", chain=True), SqliteSink("events.db")]
    with capture(sinks=sinks):
        sf_rag.end_session(sf_rag.trace_query("q"))
        sf_rag.flush()
    (tmp_path / "chained.jsonl.gz").write_bytes(gzip.compress((tmp_path / "chained.jsonl").read_bytes()))
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "key").write_text(_KEY)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("plain.jsonl", "no line of it carries a seal: it was written without a chain, or every seal was taken out"),
        ("events.db", "this is a database"),
        ("chained.jsonl.gz", "gzip -dk"),
        ("report.pdf", "there is no event in it"),
        ("empty.jsonl", "there is no event in it"),
    ],
)
def test_what_has_no_chain_is_said_to_have_none(file: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", file]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("spanforge: FILE: ")
    assert says in err


@pytest.mark.parametrize("expected", [["--key-file", "key"], ["--expect-last", "01KDVDNB0N0000000000006007"]])
@pytest.mark.parametrize(("file", "fault"), [("plain.jsonl", "unsealed"), ("report.pdf", "unreadable")])
def test_who_expects_a_chain_is_told_of_a_change(
    file: str, fault: str, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", file, *expected, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["first_break"]["fault"] == fault
    assert main(["verify", file, *expected]) == 1
    assert "seal" in (out := capsys.readouterr().out) or "no event in it" in out


def test_a_line_put_before_a_chain_is_a_change(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, chained = (folder / name for name in ("plain.jsonl", "chained.jsonl"))
    chained.write_bytes(plain.read_bytes() + chained.read_bytes())
    assert main(["verify", "chained.jsonl"]) == 1
    first, meaning = capsys.readouterr().out.splitlines()
    assert first.startswith("line 1: unsealed ")
    assert meaning == "this line carries no seal: it was put in, or written before the file had a chain"


@pytest.mark.parametrize(("change", "says"), [("edited", "was changed"), ("removed", "missing or moved")])
def test_a_fault_is_explained(change: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (folder / "chained.jsonl").read_bytes().splitlines(keepends=True)
    left = [lines[0], lines[1].replace(b'"ok"', b'"error"')] if change == "edited" else lines[1:]
    (folder / "chained.jsonl").write_bytes(b"".join(left))
    assert main(["verify", "chained.jsonl"]) == 1
    first, meaning = capsys.readouterr().out.splitlines()
    assert change in first
    assert says in meaning
