"""Tuning: a better weight that is there is found, one that is not there is not, and no fold sees its own answers."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanforge.reference.evaluation import Choice, Judged, tune
from spanforge.reference.evaluation.tuning import FOLDS, folds_of

PRESENT = Choice(0.3)
ORDERS = [(tenth / 10, rerank) for tenth in range(11) for rerank in (True, False)]


def _rng(seed: int | str) -> random.Random:
    return random.Random(seed)  # noqa: S311  (nothing secret)


def _question(rng: random.Random, best: float, *, judged: int = 8) -> Judged:
    """Return a question whose passages are relevant as a mixture of words and vectors says, rerank or not."""
    scores = {f"p{n}": (rng.random(), rng.random()) for n in range(40)}

    def ranked(weight: float) -> list[str]:
        return sorted(scores, key=lambda name: -((1 - weight) * scores[name][0] + weight * scores[name][1]))

    truth = {name: place for place, name in enumerate(ranked(best))}
    known = ranked(PRESENT.dense_weight)[:judged]
    relevant = sorted(known, key=truth.__getitem__)[: judged // 2]
    grades = {name: int(name in relevant) for name in known}
    return Judged(grades, {order: [name if name in grades else "" for name in ranked(order[0])] for order in ORDERS})


def _shuffled(question: Judged, rng: random.Random) -> Judged:
    grades = list(question.grades.values())
    rng.shuffle(grades)
    return replace(question, grades=dict(zip(question.grades, grades, strict=True)))


def test_a_better_weight_that_is_there_is_found() -> None:
    for best in (0.0, 0.7, 1.0):
        rng = _rng(f"planted {best}")
        report = tune([_question(rng, best) for _ in range(60)], PRESENT)
        assert abs(report.chosen.dense_weight - best) <= 0.15
        assert report.is_gain
        assert report.gain["ndcg@10"].low > 0
        assert report.chosen.rerank == PRESENT.rerank, "which makes no difference here"


def test_present_settings_that_are_the_best_are_kept() -> None:
    rng = _rng("kept")
    report = tune([_question(rng, PRESENT.dense_weight) for _ in range(60)], PRESENT)
    assert (report.chosen.dense_weight, report.chosen.rerank, report.is_gain) == (0.3, True, False)


def test_judgements_that_mean_nothing_show_no_gain() -> None:
    shown = 0
    for seed in range(60):
        rng = _rng(f"shuffled {seed}")
        questions = [_shuffled(_question(rng, 0.8), rng) for _ in range(40)]
        shown += tune(questions, PRESENT).is_gain
    assert shown <= 3


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), fold=st.integers(0, FOLDS - 1))
def test_no_fold_sees_its_own_judgements(seed: int, fold: int) -> None:
    rng = _rng(seed)
    questions = [_question(rng, rng.random()) for _ in range(25)]
    other = [
        _shuffled(question, rng) if place == fold else question
        for question, place in zip(questions, folds_of(25), strict=True)
    ]
    assert tune(questions, PRESENT).folds[fold] == tune(other, PRESENT).folds[fold]


@given(st.integers(20, 500))
def test_every_question_is_held_out_once_in_folds_of_one_size(count: int) -> None:
    sizes = [folds_of(count).count(fold) for fold in range(FOLDS)]
    assert sum(sizes) == count
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(0, 1000))
def test_what_nobody_judged_changes_no_ndcg(places: list[int], seed: int) -> None:
    question = _question(_rng(seed), 0.6)
    ranking = list(question.rankings[0.3, True])
    for place in places:
        ranking.insert(place, "")
    with_more = replace(question, rankings={(0.3, True): ranking})
    assert with_more.ndcg(PRESENT) == question.ndcg(PRESENT)
    assert with_more.recall(PRESENT) <= question.recall(PRESENT)


def test_top_k_is_the_least_that_finds_as_much() -> None:
    grades = {"a": 1, "b": 0}
    early = Judged(grades, dict.fromkeys(ORDERS, ("b", "", "", "a", *[""] * 20)))
    late = Judged(grades, dict.fromkeys(ORDERS, ("b", *[""] * 13, "a")))
    assert tune([early] * 20, PRESENT).chosen.top_k == 5
    report = tune([late] * 20, PRESENT)
    assert report.chosen.top_k == 3, "no less than the present settings, which find nothing"
    assert report.recall_by_top_k == {"3": 0.0, "5": 0.0, "10": 0.0, "20": 1.0, "50": 1.0}


def test_a_report_is_strict_json_and_few_questions_give_none() -> None:
    rng = _rng(1)
    questions = [_question(rng, 0.5) for _ in range(20)]
    report = tune(questions, replace(PRESENT, top_k=7))
    assert "7" in report.recall_by_top_k
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["questions"] == 20
    with pytest.raises(ValueError, match="at least 20"):
        tune(questions[:19], PRESENT)
