"""The quality floors, measured on public sets that are not part of this repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import train_grounder as train

from spanforge.reference.evaluation import evaluate_grounding
from spanforge.reference.evaluation.baselines import IDF_RECALL_THRESHOLD, idf_recall, rarities
from spanforge.reference.evaluation.datasets import read_grounding
from spanforge.reference.evaluation.metrics import balanced_accuracy
from spanforge.reference.grounding import model

pytestmark = pytest.mark.slow


def test_the_grounder_reaches_its_floors_and_beats_the_baselines(public_grounding_sets: Path):
    files = sorted(public_grounding_sets.glob("*-test.jsonl*"))
    assert files
    grounder, rule, recall = evaluate_grounding(files).means
    assert grounder.balanced_accuracy >= 0.66
    assert grounder.auc >= 0.71
    for baseline in (rule, recall):
        assert grounder.balanced_accuracy > baseline.balanced_accuracy
        assert grounder.auc > baseline.auc


@pytest.mark.timeout(600)
def test_training_reproduces_the_committed_coefficients(public_grounding_sets: Path, tmp_path: Path):
    written = tmp_path / "coefficients.json"
    assert train.main([str(public_grounding_sets), str(written)]) == 0
    committed = Path(model.__file__).with_name(model.COEFFICIENTS_FILE)
    assert written.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8")


def test_the_baselines_threshold_is_the_best_on_the_training_parts(public_grounding_sets: Path):
    sets: list[list[tuple[bool, float]]] = []
    for file in sorted(public_grounding_sets.glob("*-train.jsonl*")):
        pairs = read_grounding(file)
        rarity = rarities(context for pair in pairs for context in pair.contexts)
        sets.append([(pair.supported, idf_recall(pair.claim, pair.contexts, rarity)) for pair in pairs])

    def mean(threshold: float) -> float:
        reached = [
            balanced_accuracy([truth for truth, _ in cases], [share >= threshold for _, share in cases])
            for cases in sets
        ]
        return sum(reached) / len(reached)

    thresholds = [step / 100 for step in range(30, 100)]
    assert mean(IDF_RECALL_THRESHOLD) == max(map(mean, thresholds))
