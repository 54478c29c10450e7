"""Reproduce ``coefficients.json``: ``python -m spanforge.reference.answering.train DIR``.

DIR holds one folder a set, each as `trials` reads them. Nothing of their text is kept. The same files give the same
coefficients.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanforge import sf_rag
from spanforge.reference.answering.answerability import FEATURE_NAMES, FEATURES
from spanforge.reference.answering.trials import read_sets
from spanforge.reference.grounding.fitting import Cases, fit_signed
from spanforge.reference.grounding.model import COEFFICIENTS_FILE, Model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanforge.reference.answering.trials import Trial, TrialSet

PENALTY: Final = 0.02
"""Ridge penalty."""

MOST_REFUSED: Final = 0.11
"""Share of a set's answerable questions that may be refused; the threshold is the greatest that keeps to it in each."""

MOST_REFUSED_STRICTLY: Final = 0.25
"""The same share in strict mode, where an answer that is none is a worse fault than a refusal."""

_THRESHOLDS: Final = tuple(step / 200 for step in range(160))
_SIGNS: Final = tuple(feature.sign for feature in FEATURES)


def train(sets: Sequence[TrialSet]) -> Model:
    """Fit the model on all sets, each counting the same, and in each both outcomes the same.

    A case is positive if a document that answers was there; one in which nothing was found to choose from is none.
    """
    rows: list[list[float]] = []
    truths: list[bool] = []
    weights: list[float] = []
    for one in sets:
        cases = [trial for trial in one.trials if trial.features]
        answerable = sum(trial.answerable for trial in cases)
        sizes = {True: answerable, False: len(cases) - answerable}
        for trial in cases:
            rows.append([trial.features[name] for name in FEATURE_NAMES])
            truths.append(trial.answerable)
            weights.append(1.0 / sizes[trial.answerable])
    intercept, slopes = fit_signed(Cases(rows, truths, weights), _SIGNS, PENALTY)
    named = {name: round(slope, 4) for name, slope in zip(FEATURE_NAMES, slopes, strict=True)}
    fitted = Model(round(intercept, 4), named, 0.0, 0.0)
    thresholds = (_threshold(fitted, sets, most) for most in (MOST_REFUSED, MOST_REFUSED_STRICTLY))
    return Model(fitted.intercept, fitted.weights, *thresholds)


def _threshold(model: Model, sets: Sequence[TrialSet], most_refused: float) -> float:
    allowed = (value for value in _THRESHOLDS if all(_refused(model, one, value) <= most_refused for one in sets))
    return max(allowed, default=0.0)


def _refused(model: Model, one: TrialSet, threshold: float) -> float:
    answerable = [trial for trial in one.trials if trial.answerable]
    return sum(_probability(model, trial) < threshold for trial in answerable) / len(answerable)


def _probability(model: Model, trial: Trial) -> float:
    return model.probability(trial.features) if trial.features else 0.0


def main(arguments: Sequence[str]) -> int:
    """Train and write the coefficients beside this module, or to a second path if one is given."""
    folder, *target = arguments or [""]
    if not folder or len(target) > 1:
        sys.stderr.write("usage: python -m spanforge.reference.answering.train DIR [FILE]\n")
        return 2
    sf_rag.configure(sinks=[])
    model = train(list(read_sets(Path(folder), answering=False)))
    written = Path(target[0]) if target else Path(__file__).with_name(COEFFICIENTS_FILE)
    written.write_text(json.dumps(model.to_dict(), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
