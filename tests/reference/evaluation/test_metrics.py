from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanforge.reference.evaluation.metrics import (
    accuracy,
    balanced_accuracy,
    calibration_error,
    ndcg_at,
    precision_at,
    recall_at,
    reciprocal_rank,
    roc_auc,
)

GRADES = {"a": 3, "b": 2, "c": 0, "d": 1}


def test_ndcg_weighs_grades_by_place():
    reached = 2 + 3 / math.log2(3) + 0 + 1 / math.log2(5)
    ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(["b", "a", "c", "d"], GRADES) == pytest.approx(reached / ideal)


def test_the_ideal_ranking_has_ndcg_one_and_an_empty_one_zero():
    assert ndcg_at(["a", "b", "d", "c"], GRADES) == 1.0
    assert ndcg_at([], GRADES) == 0.0
    assert ndcg_at(["a"], {"a": 0}) == 0.0


def test_precision_counts_places_even_where_nothing_stands():
    assert precision_at(["a", "x", "b"], GRADES, 5) == pytest.approx(2 / 5)


def test_recall_counts_relevant_documents_only():
    assert recall_at(["a", "c"], GRADES) == pytest.approx(1 / 3)
    assert recall_at(["a"], {"a": 0}) == 0.0


def test_reciprocal_rank_is_of_the_first_relevant_document():
    assert reciprocal_rank(["x", "c", "d"], GRADES) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x"] * 20 + ["a"], GRADES) == 0.5  # a repeated id holds one place
    assert reciprocal_rank([f"x{place}" for place in range(10)] + ["a"], GRADES) == 0.0


@given(st.lists(st.sampled_from("abcdxyz"), max_size=15))
def test_all_ranking_measures_are_shares(ranking: list[str]):
    for measure in (ndcg_at, precision_at, recall_at, reciprocal_rank):
        assert 0.0 <= measure(ranking, GRADES) <= 1.0


def test_balanced_accuracy_is_the_mean_of_the_recalls():
    truths = [True] * 8 + [False] * 2
    assert accuracy(truths, [True] * 10) == 0.8
    assert balanced_accuracy(truths, [True] * 10) == 0.5
    assert balanced_accuracy(truths, [True] * 4 + [False] * 6) == pytest.approx((0.5 + 1.0) / 2)
    assert balanced_accuracy([True, True], [True, False]) == 0.5


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.2, 0.5, 0.9])), min_size=1, max_size=30))
def test_auc_is_the_share_of_pairs_in_order(cases: list[tuple[bool, float]]):
    truths, scores = [truth for truth, _ in cases], [score for _, score in cases]
    pairs = [(up, down) for kind, up in cases if kind for other, down in cases if not other]
    expected = (
        sum(1.0 if up > down else 0.5 if up == down else 0.0 for up, down in pairs) / len(pairs) if pairs else math.nan
    )
    assert roc_auc(truths, scores) == pytest.approx(expected, nan_ok=True)


def test_calibration_error_is_the_distance_of_claimed_and_observed():
    assert calibration_error([True, False], [0.5, 0.5]) == 0.0
    assert calibration_error([True, True, False, False], [0.9, 0.9, 0.9, 0.9]) == pytest.approx(0.4)
    assert calibration_error([True], [1.0]) == 0.0
