"""Which units answer a question best: features of each, and a model that weighs them.

The weights are fitted by ``tools.train_answers`` in the tests' folder on whether a unit holds the answer that people
gave; ``coefficients.json`` is all that is kept of the questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spanforge.reference.answering.asked import Asked
from spanforge.reference.answering.spans import candidates
from spanforge.reference.answering.tables import known_to
from spanforge.reference.answering.units import Unit
from spanforge.reference.embedding.nearness import meanings
from spanforge.reference.grounding.features import Feature
from spanforge.reference.grounding.lexicon import says
from spanforge.reference.lexical import rarity
from spanforge.reference.models import RetrievedDocument

Array = NDArray[np.float64]

RANK_FEATURES: Final[tuple[Feature, ...]] = (
    Feature("near_in_meaning", 1, "share of the question's weight in the unit, each word by the nearest in meaning"),
    Feature(
        "share_found", 1, "share of the question's words that the unit says; half of one that only its headings do"
    ),
    Feature("pairs", 1, "share of the question's neighbouring words that stand together in the unit"),
    Feature("likeness", 1, "likeness in meaning to the whole question, beside the other units"),
    Feature("kind", 1, "1 if something of the kind that is asked for is there, one half where no kind is"),
    Feature("kind_missing", -1, "1 if a name, a date or a number is asked for and the unit has none"),
    Feature("fragment", 0, "1 if the unit has under six words"),
    Feature("score", 1, "score of its passage by that of the best"),
)
"""What is known of each unit; `Compared.rows` has them in this order."""
_IN_HEADING: Final = 0.5
"""What a word of the question counts that stands only in the headings over a unit."""
_SHORT: Final = 6


@dataclass(frozen=True, slots=True)
class Compared:
    """A question compared with every unit that is open to choice.

    Attributes:
        rows: The features, one row a unit.
        weights: How much each word of the question weighs, rare ones more; they add to 1.
        hits: For each unit and word of the question 1 if it says the word, one half if only its headings do.
        sims: The same, by the word of the unit that is nearest in meaning, in [0, 1].
    """

    rows: Array = field(repr=False)
    weights: Array = field(repr=False)
    hits: Array = field(repr=False)
    sims: Array = field(repr=False)


def compare(
    asked: Asked, units: Sequence[Unit], everything: Sequence[Unit], documents: Sequence[RetrievedDocument]
) -> Compared:
    """Compare a question that has words with units, at least one.

    Args:
        asked: The question.
        units: The units that are open to choice.
        everything: All units of the passages, in order.
        documents: The passages, in the order of their numbers.
    """
    stems = list(asked.words)
    rare = rarity(stems, [unit.terms for unit in everything])
    weights = np.array([rare[stem] for stem in stems])
    weights /= weights.sum()
    hits = np.array([_hits(asked, stems, unit) for unit in units])
    said = [[word.lower() for _, word in unit.words] for unit in units]
    sims, likeness = meanings(list(asked.words.values()), weights, said)
    sims = np.maximum(sims, hits)
    best = max((document.score for document in documents), default=0.0) or 1.0
    rows = np.column_stack([
        sims @ weights,
        hits.mean(axis=1),
        _pairs(stems, units),
        likeness,
        *_kinds(asked, units),
        [float(len(unit.sentence.split()) < _SHORT) for unit in units],
        [documents[unit.number - 1].score / best for unit in units],
    ])  # fmt: skip
    return Compared(rows, weights, hits, sims)


def _hits(asked: Asked, stems: list[str], unit: Unit) -> list[float]:
    if unit.cells:
        known = known_to(asked.text, stems, unit)
        return [float(stem in known) for stem in stems]
    return [1.0 if says(unit.terms, stem) else _IN_HEADING * says(unit.context, stem) for stem in stems]


def _pairs(stems: list[str], units: Sequence[Unit]) -> list[float]:
    wanted = list(pairwise(stems))
    said = [{(a, b) for (a, _), (b, _) in pairwise(unit.words)} for unit in units]
    return [sum(pair in pairs for pair in wanted) / max(1, len(wanted)) for pairs in said]


def _kinds(asked: Asked, units: Sequence[Unit]) -> tuple[list[float], list[float]]:
    want = asked.want
    if want is None:
        return [0.5] * len(units), [0.0] * len(units)
    # A row that is open to choice has been found to hold what is wanted, be it under the name of its column.
    found = [float(bool(unit.cells) or bool(candidates(asked.text, want, unit.sentence))) for unit in units]
    return found, [float(want.expected and not one) for one in found]
