"""The quality floors, measured on public sets that are not part of this repository."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tools import train_grounder as train
from tools.perturbations import statements
from tools.twins import accuracy, called_contradicted, judged, preference

from spanforge.reference.evaluation import evaluate_grounding
from spanforge.reference.evaluation.baselines import IDF_RECALL_THRESHOLD, idf_recall, rarities
from spanforge.reference.evaluation.datasets import read_grounding
from spanforge.reference.evaluation.metrics import balanced_accuracy
from spanforge.reference.grounding import ground_claims, model

pytestmark = pytest.mark.slow


def test_the_grounder_reaches_its_floors_and_beats_the_baselines(public_grounding_sets: Path):
    files = sorted(public_grounding_sets.glob("*-test.jsonl*"))
    assert files
    grounder, rule, recall = evaluate_grounding(files).means
    assert grounder.balanced_accuracy >= 0.675
    assert grounder.auc >= 0.72
    for baseline in (rule, recall):
        assert grounder.balanced_accuracy > baseline.balanced_accuracy
        assert grounder.auc > baseline.auc


TEXTS_OF_A_SET = 60


@pytest.mark.timeout(600)
def test_made_contradictions_of_texts_kept_back_are_told_from_their_twins(public_grounding_sets: Path):
    rng = random.Random(20)  # noqa: S311 - repeatable
    judged: list[tuple[bool, str]] = []
    for file in sorted(public_grounding_sets.glob("*-test.jsonl*")):
        texts = sorted({text for pair in read_grounding(file) for text in pair.contexts if len(text) <= 12_000})
        rng.shuffle(texts)
        for place, text in enumerate(texts[:TEXTS_OF_A_SET]):
            made = [one for one in statements(text, texts[-1 - place], rng) if one.kind != "stranger"]
            verdicts = ground_claims([one.text for one in made], [text])
            judged += [(one.supported, verdict.verdict) for one, verdict in zip(made, verdicts, strict=True)]
    assert len(judged) >= 600
    truths = [truth for truth, _ in judged]
    assert balanced_accuracy(truths, [verdict == "supported" for _, verdict in judged]) >= 0.8
    assert sum(verdict == "contradicted" for truth, verdict in judged if truth) <= 0.05 * sum(truths)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_kept_back", [False, True])
def test_a_true_statement_is_preferred_to_its_twin(is_kept_back: bool, public_grounding_sets: Path):
    cases = [one for one in judged(public_grounding_sets) if one.twins.is_kept_back is is_kept_back]
    assert len(cases) >= (200 if is_kept_back else 400)
    assert preference(cases) >= 0.85
    assert accuracy(cases) >= 0.6
    assert called_contradicted(one.true for one in cases) <= 0.05


@pytest.mark.timeout(600)
def test_few_true_claims_are_called_contradicted(public_grounding_sets: Path):
    called: list[bool] = []
    for file in sorted(public_grounding_sets.glob("*-test.jsonl*")):
        for pair in read_grounding(file):
            if pair.supported:
                (verdict,) = ground_claims([pair.claim], pair.contexts, pair.question)
                called.append(verdict.verdict == "contradicted")
    assert sum(called) <= 0.05 * len(called)


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
