from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from spanforge.reference import RagResult, RagStatus
from spanforge.reference.answering.base import REFUSAL, UNSURE
from spanforge.reference.evaluation import AnswerSet, DatasetError, Question, evaluate_answers, read_answer_set
from spanforge.reference.evaluation.answers import MEASURES, outcome_of
from spanforge.reference.evaluation.metrics import risk_coverage_area
from spanforge.reference.models import Citation


def result(answer: str, status: RagStatus = RagStatus.GROUNDED, confidence: float = 0.9, **fields: Any) -> RagResult:
    return RagResult(
        answer=answer,
        citations_used=fields.pop("citations_used", []),
        sources=[],
        confidence=confidence,
        grounding_score=None,
        status=status,
    )


def test_an_answer_is_right_if_it_contains_any_that_people_gave_spaces_and_capitals_aside() -> None:
    question = Question("?", ("North  Sea", "the sea"))
    assert outcome_of(question, result("It flows into the north sea [1].")).is_right
    assert not outcome_of(question, result("It flows into a lake [1].")).is_right
    assert not outcome_of(Question("?"), result("the sea [1]")).is_right


def test_words_are_those_that_are_quoted() -> None:
    outcome = outcome_of(Question("?", ("b",)), result(f"{UNSURE}\na b [1] c. [12]", RagStatus.UNCERTAIN))
    assert (outcome.words, outcome.is_certain, outcome.is_right) == (3, False, True)


def test_where_only_documents_are_known_citing_one_is_right() -> None:
    cited = Citation(number=1, chunk_id="c", document_id="d", data_source_id="s", source="d", start=0, end=1)
    question = Question("?", documents=frozenset({"d"}))
    assert outcome_of(question, result("x [1]", citations_used=[cited])).is_right
    assert not outcome_of(question, result("x")).is_right


def test_the_report_counts_what_happened() -> None:
    questions = [Question(name, ("yes",)) for name in ("certain", "unsure", "wrong", "refused")] + [Question("none")]
    said = {
        "certain": result("yes"),
        "unsure": result(f"{UNSURE} yes", RagStatus.UNCERTAIN, 0.3),
        "wrong": result("no", confidence=0.6),
        "refused": result(REFUSAL, RagStatus.NO_INFORMATION, 0.0),
        "none": result("yes", confidence=0.5),
    }
    report = evaluate_answers(AnswerSet("s", tuple(questions)), said.__getitem__)
    values = {name: estimate.value for name, estimate in report.metrics.items()}
    assert (report.questions, report.answerable) == (5, 4)
    assert (values["right"], values["refused"], values["wrong"]) == (0.5, 0.25, 0.25)
    assert (values["right and certain"], values["right of certain"]) == (0.25, pytest.approx(1 / 3))
    assert (values["unanswerable answered"], values["unanswerable certain"]) == (1.0, 1.0)
    assert list(report.to_dict()["metrics"]) == list(MEASURES)
    json.dumps(report.to_dict(), allow_nan=False)


def test_measures_without_cases_are_not_numbers() -> None:
    report = evaluate_answers(AnswerSet("s", (Question("q"),)), lambda _: result(REFUSAL, RagStatus.NO_INFORMATION))
    assert math.isnan(report.metrics["right"].value)
    assert report.to_dict()["metrics"]["right"]["value"] is None


def test_the_risk_coverage_area_is_least_where_the_wrong_come_last() -> None:
    assert risk_coverage_area([True, True, False], [0.9, 0.8, 0.1]) == pytest.approx(1 / 9)
    assert risk_coverage_area([True, True, False], [0.1, 0.8, 0.9]) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert risk_coverage_area([True, False], [0.5, 0.5]) == pytest.approx(0.5)


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return path


def test_a_folder_of_documents_and_questions_is_read_packed_or_not(tmp_path: Path) -> None:
    documents = [{"_id": "a", "title": "A", "text": "one"}, {"_id": "b", "text": "two"}]
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, documents)).encode()))
    questions = [{"text": "q", "doc": "a", "answers": ["one"]}, {"text": "r", "doc": "b", "answers": []}]
    written(tmp_path / "questions.jsonl", questions)
    given = read_answer_set(tmp_path)
    assert given.corpus == {"a": "one", "b": "two"}
    assert given.questions == (Question("q", ("one",), frozenset({"a"}), "A"), Question("r", group="b"))


def test_half_of_the_answers_can_be_left_out() -> None:
    corpus = {name: name for name in "abcd"}
    questions = tuple(Question(name, documents=frozenset({name})) for name in corpus)
    half = AnswerSet("s", questions, corpus).without_half()
    assert set(half.corpus) == {"a", "c"}
    assert [question.is_answerable for question in half.questions] == [True, False, True, False]


def test_a_file_of_ones_own_questions_is_read_as_csv_or_json_lines(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text('\ufeffquestion,answer\n"Who, then?",Ann | Bob\nWhy?,\n', encoding="utf-8")
    rows = [{"question": "Who, then?", "answers": ["Ann", "Bob"]}, {"question": "Why?"}]
    expected = (Question("Who, then?", ("Ann", "Bob")), Question("Why?"))
    assert read_answer_set(table).questions == expected
    assert read_answer_set(written(tmp_path / "mine.jsonl", rows)).questions == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"frage,antwort\nx,y\n", "needs the columns question and answer"),
        ("a.csv", b"question,answer\n", "has no questions"),
        ("a.csv", b"question,answer\n\xff,b\n", "is not UTF-8"),
        ("a.jsonl", b'{"answer": "x"}\n', "must be a text"),
        ("a.jsonl", b'{"question": "x", "answer": 4}\n', "must be a text or a list of texts"),
    ],
)
def test_what_cannot_be_read_is_named_without_its_text(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        read_answer_set(tmp_path / name)


def test_a_question_about_a_document_that_is_not_there_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "corpus.jsonl", [{"_id": "a", "text": "one"}])
    written(tmp_path / "questions.jsonl", [{"text": "q", "doc": "z", "answers": []}])
    with pytest.raises(DatasetError, match="is not in the corpus"):
        read_answer_set(tmp_path)
