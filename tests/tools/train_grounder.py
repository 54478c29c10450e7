"""Reproduce ``coefficients.json`` from public training sets: ``PYTHONPATH=tests python -m tools.train_grounder DIR``.

DIR holds files named ``*-train.jsonl`` or ``*-train.jsonl.gz``. Nothing of their text is kept. The same files give the
same coefficients.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.fitting import Cases, fit_signed, log_odds
from tools.perturbations import statements

from spanforge.reference import grounding
from spanforge.reference.evaluation.datasets import GroundingPair, read_grounding
from spanforge.reference.evaluation.metrics import balanced_accuracy, roc_auc
from spanforge.reference.grounding.claims import read_claim
from spanforge.reference.grounding.contexts import PreparedContexts
from spanforge.reference.grounding.features import FEATURE_NAMES, FEATURES, WordWeights, examine
from spanforge.reference.grounding.model import COEFFICIENTS_FILE, Model

PENALTY: Final = 0.05
"""Ridge penalty; chosen by leaving one training set out."""

_SEED: Final = 20
_TEXTS_PERTURBED: Final = 150
"""Texts of each set from which statements are made."""

_LONGEST_PERTURBED: Final = 12_000
_PERTURBED_SHARE: Final = 0.5
"""What all made statements count beside one public set; chosen like the penalty."""
_THRESHOLDS: Final = tuple(step / 200 for step in range(60, 141))
_SIGNS: Final = tuple(feature.sign for feature in FEATURES)


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """One set as rows of features.

    Attributes:
        name: Name of the set.
        rows: Feature values of each case.
        truths: Whether each case is supported.
        kinds: Group of each case; groups of one class count equally.
        share: What the whole set counts.
    """

    name: str
    rows: Sequence[Sequence[float]] = field(repr=False)
    truths: Sequence[bool] = field(repr=False)
    kinds: Sequence[str] = field(repr=False)
    share: float = 1.0

    def weights(self) -> list[float]:
        """Weigh rows so that each class has half the share, and each kind of a class as much as another."""
        sizes = Counter(zip(self.truths, self.kinds, strict=True))
        kinds_of_class = Counter(truth for truth, _ in sizes)
        return [
            self.share / 2 / kinds_of_class[truth] / sizes[truth, kind]
            for truth, kind in zip(self.truths, self.kinds, strict=True)
        ]


def train(folder: Path) -> tuple[Model, dict[str, tuple[float, float]]]:
    """Fit the model on all training sets of a folder.

    Args:
        folder: Holds the ``*-train`` files.

    Returns:
        The model, and for each set the balanced accuracy and ROC AUC of a model fitted without that set.

    Raises:
        FileNotFoundError: The folder has no training file.
        DatasetError: A file cannot be read.
    """
    files = sorted([*folder.glob("*-train.jsonl"), *folder.glob("*-train.jsonl.gz")])
    if not files:
        raise FileNotFoundError("the folder has no file named *-train.jsonl or *-train.jsonl.gz")
    pairs = {file.name.split("-train.")[0]: read_grounding(file) for file in files}
    sets = [_as_rows(name, rows) for name, rows in pairs.items()]
    made = _perturbed(pairs)
    held_out = {left.name: _odds(left, _fit([one for one in sets if one is not left] + [made])) for left in sets}
    slope, offset = _calibrate(sets, held_out)
    chances = {name: [_logistic(slope * one + offset) for one in odds] for name, odds in held_out.items()}
    threshold = max(_THRESHOLDS, key=lambda value: (_mean_balanced(sets, chances, value), -abs(value - 0.5)))
    intercept, weights = _fit([*sets, made])
    model = Model(
        round(slope * intercept + offset, 4),
        {name: round(slope * weight, 4) for name, weight in zip(FEATURE_NAMES, weights, strict=True)},
        threshold,
        threshold,
    )
    report = {
        one.name: (
            balanced_accuracy(one.truths, [chance >= threshold for chance in chances[one.name]]),
            roc_auc(one.truths, chances[one.name]),
        )
        for one in sets
    }
    return model, report


def _row(claim: str, question: str, contexts: Sequence[str]) -> list[float]:
    read = read_claim(claim, question)
    examined = examine(read.units, PreparedContexts.of(contexts), WordWeights(read.asked))
    return [examined.features[name] for name in FEATURE_NAMES]


def _as_rows(name: str, pairs: Sequence[GroundingPair]) -> TrainingSet:
    rows = [_row(pair.claim, pair.question, pair.contexts) for pair in pairs]
    return TrainingSet(name, rows, [pair.supported for pair in pairs], [""] * len(pairs))


def _perturbed(pairs: dict[str, list[GroundingPair]]) -> TrainingSet:
    rng = random.Random(_SEED)  # noqa: S311 (a reproducible choice of sentences, not security)
    rows: list[list[float]] = []
    truths: list[bool] = []
    kinds: list[str] = []
    for name in sorted(pairs):
        texts = sorted({text for pair in pairs[name] for text in pair.contexts if len(text) <= _LONGEST_PERTURBED})
        rng.shuffle(texts)
        for place, text in enumerate(texts[:_TEXTS_PERTURBED]):
            for statement in statements(text, texts[-1 - place], rng):
                rows.append(_row(statement.text, "", [text]))
                truths.append(statement.supported)
                kinds.append(statement.kind)
    return TrainingSet("perturbed", rows, truths, kinds, _PERTURBED_SHARE)


def _fit(sets: Sequence[TrainingSet]) -> tuple[float, list[float]]:
    cases = Cases(
        [row for one in sets for row in one.rows],
        [truth for one in sets for truth in one.truths],
        [weight for one in sets for weight in one.weights()],
    )
    return fit_signed(cases, _SIGNS, PENALTY)


def _odds(held: TrainingSet, fitted: tuple[float, list[float]]) -> list[float]:
    intercept, weights = fitted
    return [log_odds(intercept, weights, row) for row in held.rows]


def _calibrate(sets: Sequence[TrainingSet], held_out: dict[str, list[float]]) -> tuple[float, float]:
    """Fit slope and offset of the odds that models gave to sets they had not seen (Platt scaling)."""
    cases = Cases(
        [[odds] for one in sets for odds in held_out[one.name]],
        [truth for one in sets for truth in one.truths],
        [weight for one in sets for weight in one.weights()],
    )
    offset, slopes = fit_signed(cases, [1], 0.0)
    return slopes[0], offset


def _mean_balanced(sets: Sequence[TrainingSet], chances: dict[str, list[float]], threshold: float) -> float:
    reached = [balanced_accuracy(one.truths, [chance >= threshold for chance in chances[one.name]]) for one in sets]
    return sum(reached) / len(reached)


def _logistic(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))


def main(arguments: Sequence[str]) -> int:
    """Train and write the coefficients beside this module, or to a second path if one is given."""
    folder, *target = arguments or [""]
    if not folder or len(target) > 1:
        sys.stderr.write("usage: PYTHONPATH=tests python -m tools.train_grounder DIR [FILE]\n")
        return 2
    model, report = train(Path(folder))
    written = Path(target[0]) if target else Path(grounding.__file__).with_name(COEFFICIENTS_FILE)
    written.write_text(json.dumps(model.to_dict(), indent=1) + "\n", encoding="utf-8")
    for name, (balanced, auc) in report.items():
        sys.stdout.write(f"left out {name}: balanced accuracy {balanced:.3f}, AUC {auc:.3f}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
