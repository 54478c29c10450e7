"""`spanforge ingest`, `ask` and `eval`, as they are called."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from spanforge.cli import main
from spanforge.cli._home import parse_user
from spanforge.cli._output import CliError
from spanforge.testing import capture


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "ferry.md").write_text("The ferry leaves at 09:45 from pier two.")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    with capture():  # `ask` configures the process it runs in
        yield folder


def test_ingest_reports_and_ask_answers(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", str(notes), "--json"]) == 0
    job = json.loads(capsys.readouterr().out)
    assert (job["indexed"], [failure["code"] for failure in job["failures"]]) == (1, ["UNSUPPORTED_FORMAT"])
    assert main(["ask", "When does the ferry leave?", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["answer"], result["sources"]) == ("09:45 [1]", ["ferry.md"])
    assert main(["ask", "When does the ferry leave?", "--stream"]) == 0
    assert "09:45" in capsys.readouterr().out


def test_errors_are_one_sentence_and_exit_code_2(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "anything"]) == 2
    assert main(["ingest", str(notes / "nowhere")]) == 2
    assert main(["ingest", str(notes)]) == 0
    capsys.readouterr()
    assert main(["ask", "When?", "--as", "eve@elsewhere"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_eval_answers_asks_the_index_ones_own_questions(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (notes.parent / "mine.csv").write_text("question,answer\nWhen does the ferry leave?,09:45 | quarter to ten\n")
    assert main(["ingest", str(notes)]) == 0
    capsys.readouterr()
    assert main(["eval", "answers", "mine.csv", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["questions"], report["answerable"], report["metrics"]["right"]["value"]) == (1, 1, 1.0)
    assert report["metrics"]["unanswerable certain"]["value"] is None
    assert main(["eval", "answers", "mine.csv"]) == 0
    assert "right and certain" in capsys.readouterr().out
    assert main(["eval", "answers", str(notes / "nowhere")]) == 2


def test_eval_retrieval_reads_folders_in_beir_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"a": "The heron waits for fish.", "b": "Owls hunt mice at night.", "c": "Storks nest on chimneys."}
    rows = [json.dumps({"_id": name, "text": text}) for name, text in texts.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(rows))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "What do owls hunt at night?"}))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tb\t1\n")
    assert main(["eval", "retrieval", str(tmp_path), "--json"]) == 0
    [reports] = json.loads(capsys.readouterr().out)
    assert set(reports) == {"pipeline", "without rerank", "words alone", "vectors alone"}
    assert reports["pipeline"]["metrics"]["ndcg@10"]["value"] == 1.0
    assert main(["eval", "retrieval", str(tmp_path / "nowhere")]) == 2


def test_who_asks_is_read_from_one_word() -> None:
    user = parse_user("ann@north+role:auditor+team:tides")
    assert (user.user_id, user.org_id, user.roles, user.teams) == ("ann", "north", {"auditor"}, {"tides"})
    for wrong in ("", "@north", "ann+auditor", "ann+role:"):
        with pytest.raises(CliError):
            parse_user(wrong)


def test_a_list_is_shown_line_by_line(notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (notes / "trips.md").write_text("A trip is booked in this order:\n\n1. Ask the pilot.\n2. Reserve\x1b a cabin.\n")
    assert main(["ingest", str(notes), "--json"]) == 0
    capsys.readouterr()
    assert main(["ask", "How is a trip booked?"]) == 0
    shown = capsys.readouterr().out
    assert "order:\n1. Ask the pilot.\n2. Reserve" in shown
    assert "\x1b a cabin" not in shown
