"""How often the offline answerer finds what the bundled documents answer, and is certain of what they do not.

The questions were written for this test: some looked at while an answerer was worked on (`tune`), the others held apart
then (`held`, `fresh`, `last`, and `whole` with lists, steps and rows), of which only rates were seen. Those without an
answer are about the documents' own subjects, where not to be certain is hardest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from spanforge.reference import Document, Pipeline, RagResult, RagStatus
from spanforge.reference.answering.base import UNSURE
from spanforge.reference.asking.assembly import REFUSAL

QUESTIONS = Path(__file__).parent / "data" / "questions.jsonl"


@dataclass(frozen=True)
class Rates:
    """Shares in [0, 1] of a part's questions."""

    right: float
    right_and_certain: float
    made_up: float


@pytest.fixture(scope="module")
def rates() -> Iterator[Callable[[str], Rates]]:
    """The rates of a part, each measured once."""
    with Pipeline() as pipeline:
        pipeline.ingest_bundled_corpus()

        @cache
        def rates_of(part: str) -> Rates:
            return measure(pipeline, part)

        yield rates_of


def measure(pipeline: Pipeline, part: str) -> Rates:
    rows = [row for line in QUESTIONS.read_text().splitlines() if (row := json.loads(line))["part"] == part]
    results = [(row["answer"], pipeline.ask(row["question"])) for row in rows]
    right = [
        (wanted.lower() in result.answer.lower(), is_certain(result))
        for wanted, result in results
        if wanted is not None
    ]
    unanswerable = [result for wanted, result in results if wanted is None]
    return Rates(
        sum(said for said, _ in right) / len(right),
        sum(said and certain for said, certain in right) / len(right),
        sum(map(is_certain, unanswerable)) / len(unanswerable),
    )


def is_certain(result: RagResult) -> bool:
    return result.status is RagStatus.GROUNDED


@pytest.mark.parametrize(
    ("part", "certain", "made_up"),
    [("tune", 0.75, 0.2), ("held", 0.75, 0.2), ("fresh", 0.75, 0.2), ("last", 0.75, 0.25), ("whole", 0.6, 0.2)],
)
def test_what_the_documents_answer_is_found_and_little_else_is_certain(
    rates: Callable[[str], Rates], part: str, certain: float, made_up: float
) -> None:
    measured = rates(part)
    assert measured.right >= 0.9
    assert measured.right_and_certain >= certain
    assert measured.made_up <= made_up


def test_strict_mode_answers_what_is_certain_and_nothing_else() -> None:
    with Pipeline() as pipeline:
        pipeline.ingest_bundled_corpus()
        for line in QUESTIONS.read_text().splitlines()[:40]:
            question = json.loads(line)["question"]
            plain, strict = pipeline.ask(question), pipeline.ask(question, strict=True)
            assert strict.answer in {plain.answer, REFUSAL}
            assert is_certain(plain) or strict.answer == REFUSAL


def ask(text: str, question: str) -> RagResult:
    with Pipeline() as pipeline:
        pipeline.ingest(Document(document_id="d", text=text))
        return pipeline.ask(question)


def test_what_asks_for_a_thing_so_a_place_is_no_answer_by_being_a_name() -> None:
    assert ask("The market in Lund opens at six.", "What opens at six?").answer.endswith(
        "The market in Lund opens at six. [1]"
    )


def test_what_is_answered_by_a_name_where_the_sentence_says_so() -> None:
    assert ask("Paris is the capital of France.", "What is the capital of France?").answer == "Paris [1]"


def test_what_is_less_likely_right_than_not_says_so_and_is_quoted_whole() -> None:
    result = ask("The Akashi Bridge in Japan was opened in 1998.", "How tall is the Akashi Bridge?")
    assert result.answer == f"{UNSURE}\nThe Akashi Bridge in Japan was opened in 1998. [1]"
    assert result.status is RagStatus.UNCERTAIN
    assert 0.0 < result.confidence < 0.5
    assert result.grounding_score == 1.0
