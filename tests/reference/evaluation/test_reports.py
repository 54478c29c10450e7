from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from spanforge.reference.evaluation import evaluate_grounding, evaluate_retrieval, read_retrieval
from spanforge.reference.evaluation.baselines import idf_recall, protocol_rule, rarities

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def garden():
    return read_retrieval(DATA / "garden")


def by_shared_words(corpus, query: str, wanted: int) -> Sequence[str]:
    words = set(query.lower().rstrip("?").split())
    return sorted(corpus, key=lambda name: -len(words & set(corpus[name].lower().split())))[:wanted]


def test_a_search_is_measured_query_by_query(garden):
    report = evaluate_retrieval(garden, lambda query, wanted: by_shared_words(garden.corpus, query, wanted))
    assert (report.dataset, report.documents, report.queries) == ("garden", 12, 10)
    assert set(report.metrics) == {"ndcg@10", "precision@5", "recall@10", "mrr"}
    for name, estimate in report.metrics.items():
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.value == pytest.approx(sum(report.per_query[name]) / 10)
    assert 0.6 < report.metrics["ndcg@10"].value < 1.0


def test_an_oracle_reaches_one_and_a_blind_search_is_significantly_worse(garden):
    ids = {text: query for query, text in garden.queries.items()}

    def oracle(query: str, _: int) -> Sequence[str]:
        grades = garden.qrels[ids[query]]
        return sorted(grades, key=lambda name: -grades[name])

    perfect = evaluate_retrieval(garden, oracle)
    blind = evaluate_retrieval(garden, lambda *_: [])
    assert perfect.metrics["ndcg@10"].value == 1.0
    assert blind.metrics["mrr"].value == 0.0
    assert blind.compared_with(perfect).significantly_worse
    assert not perfect.compared_with(perfect, "mrr").significantly_worse


def test_reports_on_different_sets_are_not_compared(garden):
    report = evaluate_retrieval(garden, lambda *_: [])
    other = evaluate_retrieval(type(garden)("other", garden.corpus, garden.queries, garden.qrels), lambda *_: [])
    with pytest.raises(ValueError, match="different"):
        report.compared_with(other)


def test_reports_are_plain_strict_json(garden):
    retrieval = evaluate_retrieval(garden, lambda *_: []).to_dict()
    grounding = evaluate_grounding([DATA / "garden-claims.jsonl"]).to_dict()
    for report in (retrieval, grounding):
        assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert "pond" not in json.dumps(grounding)


def test_the_grounder_is_measured_beside_its_baselines():
    report = evaluate_grounding([DATA / "garden-claims.jsonl"])
    (part,) = report.parts
    assert (part.name, part.pairs, part.supported_share) == ("garden-claims", 24, 0.5)
    assert [judge.judge for judge in part.judges] == ["grounder", "protocol_rule", "idf_recall"]
    grounder, rule, recall = report.means
    assert grounder.balanced_accuracy > max(rule.balanced_accuracy, recall.balanced_accuracy)
    assert grounder.auc > 0.85
    assert grounder.calibration_error is not None
    assert rule.calibration_error is None


def test_means_are_over_files():
    claims = DATA / "garden-claims.jsonl"
    once, twice = evaluate_grounding([claims]), evaluate_grounding([claims, claims])
    assert len(twice.parts) == 2
    assert twice.means == once.means


def test_without_files_there_is_nothing_to_report():
    with pytest.raises(ValueError, match="files"):
        evaluate_grounding([])


def test_the_protocols_rule_is_as_written():
    assert protocol_rule("Penguins fly", ["penguins swim"])
    assert not protocol_rule("They can fly", ["They can fly"])


def test_weighted_recall_takes_the_worst_sentence():
    context = ["The pond is deep."]
    rarity = rarities(context)
    assert idf_recall("The pond is deep.", context, rarity) == 1.0
    assert idf_recall("The pond is deep. Zebras gallop.", context, rarity) == 0.0
    assert idf_recall("...", context, rarity) == 0.0


def test_rarity_falls_with_the_number_of_texts():
    rarity = rarities(f"common {'often' if number % 2 else ''} word{number}" for number in range(40))
    assert 0.05 == rarity["common"] < rarity["often"] < rarity["word1"] < 1.0
    assert rarities([]) == {}
