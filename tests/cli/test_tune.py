"""`spanforge tune` over an index, runs and ratings that the package itself made."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from spanforge.cli import main
from spanforge.reference import DataSource, Pipeline
from spanforge.reference.failures import NoResults
from spanforge.reference.models import RetrievedDocument
from spanforge.reference.retrieving.retriever import RetrievalSettings
from spanforge.sdk import sf_feedback, sf_rag
from spanforge.sinks.jsonl import JsonlSink
from spanforge.testing import capture

_SET = Path(__file__).parents[1] / "reference" / "answering" / "data" / "questions.jsonl"
_ROWS = [json.loads(line) for line in _SET.read_text(encoding="utf-8").splitlines()]
QUESTIONS = {row["question"]: row["answer"] for row in _ROWS if row["answer"]}
_KEY = "a key that is longer than thirty-two bytes"
_ASKED = 40
_Judge = Callable[[str, list[RetrievedDocument]], Mapping[str, int]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an index, questions, and runs that were rated in several ways."""
    folder = tmp_path_factory.mktemp("tune")
    with Pipeline(folder / "home") as pipeline:
        pipeline.ingest_bundled_corpus()
        by_vectors = Pipeline(index=pipeline.index, retrieval=RetrievalSettings(dense_weight=1.0))
        by_vectors.put_source(DataSource(data_source_id="bundled"))

        def as_vectors_say(question: str, found: list[RetrievedDocument]) -> dict[str, int]:
            shown = {one.chunk_id for one in found}
            nearest = [] if not found else by_vectors.retrieve(question, rerank=False, top_k=1000).documents
            best = [one.chunk_id for one in nearest if one.chunk_id in shown]
            return {name: int(name in best[: len(best) // 2]) for name in best}

        def as_the_answer_says(question: str, found: list[RetrievedDocument]) -> dict[str, int]:
            return {one.chunk_id: int(str(QUESTIONS[question]) in one.text) for one in found}

        def nothing(*_: object) -> dict[str, int]:
            return {}

        asked = _ask(pipeline, folder / "runs.jsonl")
        _rate(asked, folder, "vectors", as_vectors_say)
        _rate(asked, folder, "answers", as_the_answer_says)
        _rate(asked, folder, "thumbs", nothing)
        keyed = _ask(pipeline, folder / "runs.jsonl", hash_key=_KEY)
        _rate(keyed, folder, "keyed", as_vectors_say)
    texts = [json.dumps({"_id": str(n), "text": text}) for n, text in enumerate(QUESTIONS)]
    (folder / "questions.jsonl").write_text("\n".join(texts), encoding="utf-8")
    return folder


def _found(pipeline: Pipeline, question: str) -> list[RetrievedDocument]:
    try:
        return pipeline.retrieve(question).documents
    except NoResults:
        return []


def _ask(
    pipeline: Pipeline, runs: Path, *, hash_key: str | None = None
) -> dict[str, tuple[str, list[RetrievedDocument]]]:
    """Ask, and return the session of each question with what was found for it."""
    runs.unlink(missing_ok=True)
    with capture(sinks=[JsonlSink(runs)], hash_key=hash_key):
        asked = {question: pipeline.ask(question).session_id for question in list(QUESTIONS)[:_ASKED]}
        sf_rag.flush()
    with capture():
        return {question: (session, _found(pipeline, question)) for question, session in asked.items()}


def _rate(asked: Mapping[str, tuple[str, list[RetrievedDocument]]], folder: Path, name: str, judge: _Judge) -> None:
    """Write the runs, and what a judge says of them, into a file of its own."""
    events = folder / f"{name}.jsonl"
    events.write_bytes((folder / "runs.jsonl").read_bytes())
    with capture(sinks=[JsonlSink(events)]):
        for question, (session, found) in asked.items():
            told = judge(question, found)
            sf_feedback.submit(session, rating="free_text" if told else "thumbs_up", metadata={"relevance": told})
        sf_rag.flush()


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def _tune(*arguments: str) -> int:
    return main(["tune", *arguments, "--questions", "questions.jsonl", "--home", "home"])


def _report(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    code = _tune(*arguments, "--json")
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


def _refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = main(["tune", *arguments])
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1), err
    return err


def test_a_gain_that_is_there_is_shown_with_how_to_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    report = _report(capsys, "vectors.jsonl")
    assert report["is_gain"]
    assert report["chosen"]["dense_weight"] >= 0.8
    assert report["gain"]["ndcg@10"]["low"] > 0
    assert _tune("vectors.jsonl") == 0
    shown = capsys.readouterr().out
    assert f"RetrievalSettings(dense_weight={report['chosen']['dense_weight']:g})" in shown
    assert "only passages that were shown" in shown


def test_settings_in_use_that_are_the_best_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert _tune("vectors.jsonl", "--weight", "1", "--no-rerank") == 0
    assert "No gain that this many questions could show" in capsys.readouterr().out


def test_no_text_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert _tune("answers.jsonl") == 0
    assert _tune("answers.jsonl", "--json") == 0
    shown = capsys.readouterr().out
    assert not [text for text in QUESTIONS if text in shown]


def test_a_thumb_for_the_whole_answer_tells_no_order_from_another(capsys: pytest.CaptureFixture[str]) -> None:
    said = _refused(capsys, "thumbs.jsonl", "--questions", "questions.jsonl", "--home", "home")
    assert re.search("0 of [0-9]+ judged questions", said)
    assert "20 are needed" in said


def test_judgements_made_directly_are_taken_alone_or_beside_feedback(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    with Pipeline(folder / "home") as pipeline:
        found = [_found(pipeline, text)[0] for text in list(QUESTIONS)[_ASKED : _ASKED + 40]]
    rows = [f"{_ASKED + n}\t{one.document_id if n % 2 else one.chunk_id}\t1" for n, one in enumerate(found)]
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(rows), encoding="utf-8")
    alone = _report(capsys, "--qrels", "qrels.tsv")
    assert (alone["judged"], alone["questions"], alone["before"]["ndcg@10"]) == (40, 40, 1.0)
    assert not alone["is_gain"]
    beside = _report(capsys, "vectors.jsonl", "--qrels", "qrels.tsv")
    assert beside["judged"] == 40 + _report(capsys, "vectors.jsonl")["judged"]


def test_questions_under_a_key_need_the_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = _refused(capsys, "keyed.jsonl", "--questions", "questions.jsonl", "--home", "home")
    assert f"{_ASKED} questions that were rated" in said
    assert "SPANFORGE_HASH_KEY" in said
    monkeypatch.setenv("SPANFORGE_HASH_KEY", _KEY)
    assert _report(capsys, "keyed.jsonl")["is_gain"]


@pytest.mark.parametrize(
    ("questions", "says"),
    [
        ("", "has no lines"),
        ('{"text": "What did nobody ask?"}', "write each exactly as it was asked"),
        ('{"question": "x"}', "field 'text'"),
        ("no json", "is not a JSON object"),
        (None, "does not exist"),
    ],
)
def test_questions_that_are_none_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, questions: str | None, says: str
) -> None:
    file = tmp_path / "q.jsonl"
    if questions is not None:
        file.write_text(questions, encoding="utf-8")
    said = _refused(capsys, "vectors.jsonl", "--questions", str(file), "--home", "home")
    assert said.startswith("spanforge: --questions: ")
    assert says in said


def test_the_rest_of_what_cannot_be_used_is_refused_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    usual = ("--questions", "questions.jsonl", "--home", "home")
    empty, qrels = tmp_path / "events.jsonl", tmp_path / "qrels.tsv"
    empty.write_text("")
    qrels.write_text("nobody\tx\t1\n")
    assert "--from: nobody rated" in _refused(capsys, str(empty), *usual)
    assert "no index in this folder" in _refused(capsys, "vectors.jsonl", *usual[:3], str(tmp_path))
    assert "--qrels: " in _refused(capsys, "--qrels", str(qrels), *usual)
    assert "NO_ACCESSIBLE_SOURCES" in _refused(capsys, "vectors.jsonl", *usual, "--as", "eve@elsewhere")
    blank = tmp_path / "blank.jsonl"
    blank.write_text('{"_id": "nobody", "text": ""}')
    assert "0 of 1 judged" in _refused(capsys, "--qrels", str(qrels), "--questions", str(blank), *usual[2:])
    for share in ("nan", "2", "-0.1", "much"):
        assert "--weight: a share from 0" in _refused(capsys, "vectors.jsonl", *usual, f"--weight={share}")


def test_an_index_by_words_alone_has_no_weight_to_choose(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Pipeline(tmp_path / "words", embedder=None) as pipeline:
        pipeline.ingest_bundled_corpus()
        found = [one[0].chunk_id for text in list(QUESTIONS)[:30] if (one := _found(pipeline, text))]
    rows = [f"{n}\t{chunk}\t1" for n, chunk in enumerate(found)]
    (tmp_path / "qrels.tsv").write_text("\n".join(rows), encoding="utf-8")
    arguments = ("--qrels", str(tmp_path / "qrels.tsv"), "--questions", "questions.jsonl")
    assert main(["tune", *arguments, "--home", str(tmp_path / "words"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {choice["dense_weight"] for choice in (report["present"], report["chosen"], *report["folds"])} == {0.0}
