"""Reproduce the answerer's ``coefficients.json``: ``PYTHONPATH=tests python -m tools.train_answers DIR [FILE]``.

DIR holds ``corpus.jsonl`` and ``questions.jsonl``, as ``spanforge eval answers`` reads them. Every question is asked of
the whole corpus; one with an answer is also asked without the document that has it. The ranking is fitted on which
units hold an answer, the certainty on whether the unit is right that a ranking puts first which was fitted without that
unit's article. The figures printed are those of articles that neither model was fitted on. Nothing of the text is kept;
the same files give the same coefficients.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tools.fitting import Cases, fit_signed

from spanforge import sf_rag
from spanforge.reference import Document, Pipeline, answering
from spanforge.reference.answering import certainty
from spanforge.reference.answering.choice import CERTAIN_AT, Field, Models, field_of
from spanforge.reference.answering.extractive import ExtractiveAnswerer
from spanforge.reference.answering.ranking import RANK_FEATURES
from spanforge.reference.evaluation.answers import AnswerSet, Question, read_answer_set
from spanforge.reference.evaluation.metrics import calibration_error, roc_auc
from spanforge.reference.grounding.model import COEFFICIENTS_FILE, Model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from spanforge.reference.grounding.features import Feature
    from spanforge.reference.models import AnsweringInput, AnsweringOutput, RetrievedDocument

FOLDS: Final = 5
RANKING_PENALTY: Final = 0.0001
CERTAINTY_PENALTY: Final = 0.003
WITHOUT_WEIGHT: Final = 0.3
"""What a question asked without its document counts beside one asked of the whole corpus."""


@dataclass(frozen=True)
class Case:
    """A question put to some passages.

    Attributes:
        found: What was open to choice.
        holds: Of each unit, whether it holds the answer.
        fold: Where its article is held back.
        weight: What it counts.
    """

    found: Field = field(repr=False)
    holds: tuple[bool, ...] = field(repr=False)
    fold: int
    weight: float = 1.0


class _Observed(ExtractiveAnswerer):
    """Keeps the passages it is given."""

    documents: Sequence[RetrievedDocument] = ()

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        self.documents = request.grounded_docs
        return super().answer(request.model_copy(update={"grounded_docs": []}))


def cases_of(given: AnswerSet) -> Iterator[Case]:
    """Put every question, and yield what there was to choose from."""
    articles = sorted({question.group for question in given.questions})
    folds = {article: place % FOLDS for place, article in enumerate(articles)}
    observed = _Observed()
    with Pipeline(answerer=observed) as pipeline:
        pipeline.ingest([Document(document_id=name, text=text) for name, text in given.corpus.items()])
        for question in given.questions:
            observed.documents = ()
            pipeline.ask(question.text)
            fold = folds[question.group]
            yield from _case(question, observed.documents, fold, 1.0)
            if question.answers:
                left = [one for one in observed.documents if one.document_id not in question.documents]
                yield from _case(question, left, fold, WITHOUT_WEIGHT)


def _case(question: Question, documents: Sequence[RetrievedDocument], fold: int, weight: float) -> Iterator[Case]:
    found = field_of(question.text, documents)
    if found is not None:
        gold = [place + 1 for place, one in enumerate(documents) if one.document_id in question.documents]
        holds = tuple(unit.number in gold and question.is_answered_by(unit.text) for unit in found.units)
        yield Case(found, holds, fold, weight)


def fit_ranking(cases: Collection[Case]) -> Model:
    """Fit on the units of the questions that some unit answers."""
    useful = [case for case in cases if any(case.holds)]
    rows: list[list[float]] = np.vstack([case.found.compared.rows for case in useful]).tolist()
    truths = [one for case in useful for one in case.holds]
    return _fit(RANK_FEATURES, Cases(rows, truths, [1.0] * len(truths)), RANKING_PENALTY)


def fit_certainty(rows: Sequence[Chosen]) -> Model:
    """Fit on whether the first unit is right."""
    cases = Cases([one.row for one in rows], [one.is_right for one in rows], [one.case.weight for one in rows])
    return _fit(certainty.FEATURES, cases, CERTAINTY_PENALTY)


def _fit(features: Sequence[Feature], cases: Cases, penalty: float) -> Model:
    intercept, slopes = fit_signed(cases, [one.sign for one in features], penalty)
    named = {one.name: round(slope, 4) for one, slope in zip(features, slopes, strict=True)}
    return Model(round(intercept, 4), named, CERTAIN_AT, CERTAIN_AT)


@dataclass(frozen=True)
class Chosen:
    """What a ranking chose in a case, and whether it is right."""

    case: Case
    row: list[float]
    is_right: bool


def chosen_by(ranking: Model, case: Case) -> Chosen:
    """Return what a ranking chooses."""
    odds = case.found.odds(ranking)
    features = case.found.features(odds)
    return Chosen(case, [features[one.name] for one in certainty.FEATURES], case.holds[case.found.best(odds)])


def train(given: AnswerSet) -> tuple[Models, dict[str, Any]]:
    """Return the models, and how they do on articles that they were not fitted on."""
    cases = list(cases_of(given))
    chosen: list[Chosen] = []
    for fold in range(FOLDS):
        ranking = fit_ranking([case for case in cases if case.fold != fold])
        chosen += [chosen_by(ranking, case) for case in cases if case.fold == fold]
    chances: list[float] = []
    measured = [one for one in chosen if one.case.weight == 1.0]
    for fold in range(FOLDS):
        model = fit_certainty([one for one in chosen if one.case.fold != fold])
        chances += [_chance(model, one) for one in measured if one.case.fold == fold]
    models = Models(fit_ranking(cases), fit_certainty(chosen))
    return models, _figures(given, [one.is_right for one in measured], chances)


def _chance(model: Model, one: Chosen) -> float:
    return model.probability(dict(zip((feature.name for feature in certainty.FEATURES), one.row, strict=True)))


def _figures(given: AnswerSet, right: Sequence[bool], chances: Sequence[float]) -> dict[str, Any]:
    answerable = sum(bool(question.answers) for question in given.questions)
    certain = [one for one, chance in zip(right, chances, strict=True) if chance >= CERTAIN_AT]
    return {
        "right": sum(right) / answerable,
        "certain and right": sum(certain) / answerable,
        "right of certain": sum(certain) / max(1, len(certain)),
        "auc": roc_auc(right, chances),
        "ece": calibration_error(right, chances),
    }


def main(arguments: Sequence[str]) -> int:
    """Train, print the figures, and write the coefficients beside the answerer, or to a second path if one is given."""
    folder, *target = arguments or [""]
    if not folder or len(target) > 1:
        sys.stderr.write("usage: PYTHONPATH=tests python -m tools.train_answers DIR [FILE]\n")
        return 2
    sf_rag.configure(sinks=[])
    models, figures = train(read_answer_set(Path(folder)))
    for name, value in figures.items():
        sys.stdout.write(f"{name}: {value:.3f}\n")
    written = Path(target[0]) if target else Path(answering.__file__).with_name(COEFFICIENTS_FILE)
    written.write_text(json.dumps(models.to_dict(), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
