"""Choosing fusion weight, rerank and ``top_k`` by judged passages, and measuring the choice on questions held out."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final, TypeAlias

from spanforge.reference.access import accessible
from spanforge.reference.asking.options import retrieval_input
from spanforge.reference.evaluation.metrics import ndcg_at, recall_at
from spanforge.reference.evaluation.resampling import SEED, PairedComparison, Report, compare_paired
from spanforge.reference.failures import NoResults
from spanforge.reference.models import User
from spanforge.reference.pipeline import Pipeline
from spanforge.reference.retrieving.fusion import fuse
from spanforge.reference.retrieving.understanding import process_query

FEWEST: Final = 20
"""Questions below which nothing is measured: an interval over fewer is not worth its name."""
FOLDS: Final = 5
_WEIGHTS: Final = tuple(tenth / 10 for tenth in range(11))
_TOP_KS: Final = (3, 5, 10, 20, 50)
_MAY_MISS: Final = 0.01
"""Share of the relevant passages that another ``top_k`` may miss of those that the present settings find."""
_BEYOND_CHANCE: Final = 1.64
"""Standard errors by which another order has to be better: what one comparison in twenty is by chance."""
Order: TypeAlias = tuple[float, bool]
"""Fusion weight, and whether there is a rerank."""


@dataclass(frozen=True, slots=True)
class Choice(Report):
    """What can be chosen: ``dense_weight`` of `RetrievalSettings`, ``rerank`` and ``top_k`` of every question."""

    dense_weight: float
    rerank: bool = True
    top_k: int = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """One question, as each order ranks what is known of its passages.

    Attributes:
        grades: Id of a passage or document that the search finds → grade, 0 for not relevant.
        rankings: Order → ids by place; empty where nothing is known of the passage.
    """

    grades: Mapping[str, int]
    rankings: Mapping[Order, Sequence[str]]

    def ndcg(self, choice: Choice) -> float:
        """Return nDCG@10 of what is known, the rest taken out (Sakai 2007): unjudged is not irrelevant."""
        ranking = self.rankings[choice.dense_weight, choice.rerank]
        return ndcg_at([name for name in ranking if name], self.grades)

    def recall(self, choice: Choice) -> float:
        """Return the share of relevant passages that are handed on."""
        ranking = self.rankings[choice.dense_weight, choice.rerank]
        return recall_at(ranking[: choice.top_k], self.grades, choice.top_k)


_MEASURES: Final = {"ndcg@10": Judged.ndcg, "recall@top_k": Judged.recall}


@dataclass(frozen=True, slots=True)
class TuningReport(Report):
    """What was chosen, and whether it is a gain.

    Attributes:
        questions: Questions measured.
        present: The settings in use.
        chosen: What all questions together choose.
        folds: What the questions outside of each fold chose, by which that fold was measured.
        before: Mean of each measure with the settings in use: ``ndcg@10`` and ``recall@top_k``.
        after: The same with what the other folds chose.
        gain: The difference, question by question.
        recall_by_top_k: ``top_k`` → recall in the order that was chosen; over all questions, none held out.
        is_gain: Whether nDCG is shown to be higher, and recall not to be lower by more than a hundredth.
    """

    questions: int
    present: Choice
    chosen: Choice
    folds: tuple[Choice, ...]
    before: Mapping[str, float]
    after: Mapping[str, float]
    gain: Mapping[str, PairedComparison]
    recall_by_top_k: Mapping[str, float]
    is_gain: bool


def judged_question(
    pipeline: Pipeline, question: str, grades: Mapping[str, int], present: Choice, user: User, *, complete: bool = False
) -> Judged | None:
    """Search once, and rank what was found in every order; None where its judgements tell no order from another.

    Args:
        pipeline: Searches.
        question: Its text.
        grades: Chunk id or document id → grade.
        present: The settings in use.
        user: Who asks.
        complete: Whether what was not judged is irrelevant, as where somebody went through the documents.

    Raises:
        RagFailure: The search failed.
    """
    query, retriever = process_query(question), pipeline.retriever
    sources = accessible(user, pipeline.catalog.sources(user.org_id))
    try:
        request = retrieval_input(question, {"top_k": present.top_k})
        searched = retriever.search(request, query, org_id=user.org_id, sources=sources)
    except NoResults:
        return None
    rows = [candidate.row for candidate in searched.candidates]
    names = [next((name for name in (row.chunk_id, row.document_id) if name in grades), "") for row in rows]
    known = {name: grades[name] for name in names if name}
    if not any(known.values()) or not (complete or len(set(known.values())) > 1):
        return None
    if complete:
        names = [name or row.chunk_id for name, row in zip(names, rows, strict=True)]
    method = retriever.settings.fusion
    has_weight = retriever.embedder is not None and method == "weighted"
    rankings: dict[Order, list[str]] = {}
    for weight in sorted({*_WEIGHTS, present.dense_weight}) if has_weight else (present.dense_weight,):
        fused = replace(searched, fused=tuple(fuse(searched.candidates, method=method, dense_weight=weight)))
        for rerank in (True, False):
            rankings[weight, rerank] = [names[i] for i, _ in retriever.order(fused, query, rerank=rerank)]
    return Judged(known, rankings)


def tune(questions: Sequence[Judged], present: Choice) -> TuningReport:
    """Choose by the questions outside of each fold and measure on those in it; then choose by all.

    Raises:
        ValueError: There are fewer than `FEWEST` questions.
    """
    if len(questions) < FEWEST:
        raise ValueError(f"at least {FEWEST} questions are needed")
    places = folds_of(len(questions))
    folds = tuple(
        _choose([one for one, place in zip(questions, places, strict=True) if place != fold], present)
        for fold in range(FOLDS)
    )
    before = {name: [of(one, present) for one in questions] for name, of in _MEASURES.items()}
    pairs = [(one, folds[place]) for one, place in zip(questions, places, strict=True)]
    after = {name: [of(one, choice) for one, choice in pairs] for name, of in _MEASURES.items()}
    gain = {name: compare_paired(after[name], before[name]) for name in _MEASURES}
    chosen = _choose(questions, present)
    return TuningReport(
        len(questions),
        present,
        chosen,
        folds,
        {name: fmean(values) for name, values in before.items()},
        {name: fmean(values) for name, values in after.items()},
        gain,
        {str(one.top_k): _recall(questions, one) for one in _by_top_k(chosen, present)},
        chosen != present and gain["ndcg@10"].low > 0 and gain["recall@top_k"].high >= -_MAY_MISS,
    )


def folds_of(count: int) -> list[int]:
    """Return the fold of each of so many questions."""
    folds = [place % FOLDS for place in range(count)]
    random.Random(SEED).shuffle(folds)  # noqa: S311 (statistics, not security)
    return folds


def _choose(questions: Sequence[Judged], present: Choice) -> Choice:
    """Return the order with the best mean nDCG, and the least ``top_k`` that finds as much as the present settings.

    The present order stays unless another is better beyond chance: of noise, too, something is always best. Of orders
    that are as good as each other, the one nearest to it is chosen.
    """

    def merit(choice: Choice) -> tuple[float, bool, float]:
        value = round(fmean(one.ndcg(choice) for one in questions), 9)
        return value, choice.rerank == present.rerank, -abs(choice.dense_weight - present.dense_weight)

    best = max((Choice(*order, present.top_k) for order in questions[0].rankings), key=merit)
    lead = [one.ndcg(best) - one.ndcg(present) for one in questions]
    if fmean(lead) <= _BEYOND_CHANCE * stdev(lead) / math.sqrt(len(lead)):
        best = present
    wanted = _recall(questions, present) - _MAY_MISS
    *others, most = _by_top_k(best, present)
    return next((one for one in others if _recall(questions, one) >= wanted), most)


def _by_top_k(choice: Choice, present: Choice) -> list[Choice]:
    return [replace(choice, top_k=k) for k in sorted({*_TOP_KS, present.top_k})]


def _recall(questions: Sequence[Judged], choice: Choice) -> float:
    return fmean(one.recall(choice) for one in questions)
