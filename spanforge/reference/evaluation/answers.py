"""Measure answers: how often they are right, what is refused, and what the stated confidence is worth."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from spanforge.reference.answering.base import UNSURE, is_refusal
from spanforge.reference.evaluation.datasets import DatasetError, find, objects, read_retrieval, text
from spanforge.reference.evaluation.metrics import calibration_error, risk_coverage_area, roc_auc
from spanforge.reference.evaluation.resampling import Estimate, Report, bootstrap
from spanforge.reference.models import RagResult, RagStatus

_RESAMPLES: Final = 300
"""Fewer than for means: each resample is sorted anew for the areas."""
_CITATION: Final = re.compile(r"\s?\[\d{1,4}\]")
_BETWEEN_ANSWERS: Final = "|"
"""Parts several answers in one cell of a CSV file."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and what people gave as its answers.

    Attributes:
        answers: Any one of them, contained in what is shown, makes it right.
        documents: Ids of the documents that answer it; where no answers are known, citing one of them makes it right.
        group: What it is asked about, such as an article.
    """

    text: str = field(repr=False)
    answers: tuple[str, ...] = field(default=(), repr=False)
    documents: frozenset[str] = frozenset()
    group: str = ""

    @property
    def is_answerable(self) -> bool:
        """Whether the documents answer it."""
        return bool(self.answers or self.documents)

    def is_answered_by(self, shown: str) -> bool:
        """Tell whether a text contains one of its answers, white space and capitals aside."""
        return any(_plain(answer) in _plain(shown) for answer in self.answers)


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """Questions, and the documents they are asked of.

    Attributes:
        corpus: Document id → text; empty where they are asked of an index that is there already.
    """

    name: str
    questions: tuple[Question, ...] = field(repr=False)
    corpus: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def without_half(self) -> AnswerSet:
        """Return it without every second document that answers a question, whose questions thereby have no answer."""
        answering = sorted({name for question in self.questions for name in question.documents})
        corpus = {name: body for name, body in self.corpus.items() if name not in set(answering[1::2])}
        questions = tuple(
            question if question.documents & corpus.keys() else Question(question.text, group=question.group)
            for question in self.questions
        )
        return AnswerSet(f"{self.name}, half of the answers removed", questions, corpus)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question ended.

    Attributes:
        is_answerable: Whether there is a right answer.
        is_refused: Whether nothing was shown.
        is_certain: Whether it was shown as an answer, and not as the closest passages.
        is_right: Whether what was shown is right.
        confidence: As stated, in [0, 1].
        words: How many were shown, citations aside.
    """

    is_answerable: bool
    is_refused: bool
    is_certain: bool
    is_right: bool
    confidence: float
    words: int


@dataclass(frozen=True, slots=True)
class AnswerReport(Report):
    """How good the answers to one set are.

    Attributes:
        name: Name of the set.
        questions: Questions asked.
        answerable: How many of them the documents answer.
        metrics: Name of each measure → value with its interval, in the order of `MEASURES`.
    """

    name: str
    questions: int
    answerable: int
    metrics: Mapping[str, Estimate]


def _share(of: Callable[[Outcome], bool], hit: Callable[[Outcome], bool]) -> Callable[[Sequence[Outcome]], float]:
    def measure(outcomes: Sequence[Outcome]) -> float:
        base = [outcome for outcome in outcomes if of(outcome)]
        return sum(map(hit, base)) / len(base) if base else math.nan

    return measure


def _shown(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if not outcome.is_refused]


def _words(outcomes: Sequence[Outcome]) -> float:
    lengths = [outcome.words for outcome in _shown(outcomes)]
    return sum(lengths) / len(lengths) if lengths else math.nan


def _judged(
    measure: Callable[[Sequence[bool], Sequence[float]], float],
) -> Callable[[Sequence[Outcome]], float]:
    def judged(outcomes: Sequence[Outcome]) -> float:
        shown = _shown(outcomes)
        return measure([one.is_right for one in shown], [one.confidence for one in shown]) if shown else math.nan

    return judged


MEASURES: Final[Mapping[str, Callable[[Sequence[Outcome]], float]]] = {
    "right": _share(lambda one: one.is_answerable, lambda one: one.is_right),
    "refused": _share(lambda one: one.is_answerable, lambda one: one.is_refused),
    "wrong": _share(lambda one: one.is_answerable, lambda one: not one.is_right and not one.is_refused),
    "right and certain": _share(lambda one: one.is_answerable, lambda one: one.is_right and one.is_certain),
    "right of certain": _share(lambda one: one.is_certain, lambda one: one.is_right),
    "unanswerable answered": _share(lambda one: not one.is_answerable, lambda one: not one.is_refused),
    "unanswerable certain": _share(lambda one: not one.is_answerable, lambda one: one.is_certain),
    "words": _words,
    "confidence AUC": _judged(roc_auc),
    "risk-coverage area": _judged(risk_coverage_area),
    "calibration error": _judged(calibration_error),
}
"""What is measured: the first four as shares of the answerable questions; the last three over what was shown."""


def evaluate_answers(given: AnswerSet, ask: Callable[[str], RagResult]) -> AnswerReport:
    """Ask every question of a set and measure the answers."""
    outcomes = [outcome_of(question, ask(question.text)) for question in given.questions]
    answerable = sum(outcome.is_answerable for outcome in outcomes)
    metrics = {name: bootstrap(outcomes, measure, resamples=_RESAMPLES) for name, measure in MEASURES.items()}
    return AnswerReport(given.name, len(outcomes), answerable, metrics)


def outcome_of(question: Question, result: RagResult) -> Outcome:
    """Judge one result."""
    refused = is_refusal(result.answer)
    shown = _CITATION.sub("", result.answer.removeprefix(UNSURE))
    cited = any(citation.document_id in question.documents for citation in result.citations_used)
    return Outcome(
        is_answerable=question.is_answerable,
        is_refused=refused,
        is_certain=result.status is RagStatus.GROUNDED,
        is_right=not refused and (question.is_answered_by(shown) if question.answers else cited),
        confidence=result.confidence,
        words=len(shown.split()),
    )


def read_answer_set(path: str | Path) -> AnswerSet:
    """Read questions with their answers.

    Args:
        path: A folder with ``corpus.jsonl`` and ``questions.jsonl`` (each may end in ``.gz``), a question an object
            with ``text``, ``answers`` (a list of texts, empty where there is none) and optionally ``doc``; a folder in
            BEIR layout, where citing a relevant document is right; or a file about documents in an index: JSON lines or
            CSV with ``question`` and ``answer`` (several in one cell between bars; none: not answered there).

    Raises:
        DatasetError: A file is missing or malformed.
    """
    place = Path(path)
    if place.is_file():
        questions = tuple(_csv(place) if place.suffix == ".csv" else _json(place))
        if not questions:
            raise DatasetError(place, "has no questions")
        return AnswerSet(place.name, questions)
    if (place / "queries.jsonl").is_file() or (place / "queries.jsonl.gz").is_file():
        return _beir(place)
    return _folder(place)


def _folder(root: Path) -> AnswerSet:
    corpus: dict[str, str] = {}
    titles: dict[str, str] = {}
    file = find(root, "corpus.jsonl", "corpus.jsonl.gz")
    for line, row in objects(file):
        name = text(file, line, row, "_id")
        corpus[name] = text(file, line, row, "text")
        titles[name] = text(file, line, row, "title", default=name)
    file = find(root, "questions.jsonl", "questions.jsonl.gz")
    questions: list[Question] = []
    for line, row in objects(file):
        answers = _answers(file, line, row.get("answers"))
        about = text(file, line, row, "doc", default="")
        if about and about not in corpus:
            raise DatasetError(file, "is not in the corpus", line=line, field="doc")
        documents = frozenset({about} if about and answers else ())
        questions.append(Question(text(file, line, row, "text"), answers, documents, titles.get(about, "")))
    return AnswerSet(root.name, tuple(questions), corpus)


def _beir(root: Path) -> AnswerSet:
    dataset = read_retrieval(root)
    questions = [
        Question(asked, documents=frozenset(name for name, grade in dataset.qrels[query].items() if grade))
        for query, asked in dataset.queries.items()
    ]
    return AnswerSet(dataset.name, tuple(questions), dataset.corpus)


def _json(file: Path) -> Iterator[Question]:
    for line, row in objects(file):
        given: Any = row.get("answers", row.get("answer"))
        yield Question(text(file, line, row, "question"), _answers(file, line, given or []))


def _csv(file: Path) -> Iterator[Question]:
    rows = csv.DictReader(io.StringIO(_content(file), newline=""))
    for line, row in enumerate(rows, start=2):
        asked, answers = row.get("question"), row.get("answer")
        if asked is None or answers is None:
            raise DatasetError(file, "needs the columns question and answer", line=line)
        parts = (part.strip() for part in answers.split(_BETWEEN_ANSWERS))
        yield Question(asked, tuple(part for part in parts if part))


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        pass
    raise DatasetError(file, "is not UTF-8")


def _answers(file: Path, line: int, given: object) -> tuple[str, ...]:
    answers = [given] if isinstance(given, str) else given
    if not isinstance(answers, list) or not all(isinstance(one, str) for one in cast("list[object]", answers)):
        raise DatasetError(file, "must be a text or a list of texts", line=line, field="answers")
    return tuple(one for one in cast("list[str]", answers) if one.strip())


def _plain(written: str) -> str:
    return " ".join(written.casefold().split())
