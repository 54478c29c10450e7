"""How likely the unit that was chosen is the right answer: features of the choice, and the model fitted on them.

The probability is of what people would call right, on questions of which about half have an answer in the documents;
``tools.train_answers`` in the tests' folder fits it, cross-fitted over articles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from spanforge.reference.answering.asked import Asked
from spanforge.reference.answering.ranking import Array, Compared
from spanforge.reference.answering.spans import lacks
from spanforge.reference.answering.units import Unit
from spanforge.reference.embedding.nearness import likeness
from spanforge.reference.grounding.contexts import PreparedContexts
from spanforge.reference.grounding.features import FAULTS, Feature, WordWeights, examine
from spanforge.reference.grounding.features import FEATURES as CLAIM_FEATURES
from spanforge.reference.grounding.lexicon import says

_OWN: Final[tuple[Feature, ...]] = (
    Feature("likeness", 1, "likeness in meaning of the unit and the question as a whole"),
    Feature("lead", 1, "share of the unit in the ranking's odds of all units"),
    Feature("lead_of_passage", 1, "share of its passage in them"),
    Feature("nearest_missing", 1, "of the words it does not say, how near in meaning it comes to one; 1 if none"),
    Feature("missing_anywhere", -1, "share of the question's weight that no passage says"),
    Feature("name_missing", -1, "share of the question's weight in names that its passage does not say"),
    Feature("kind_absent", -1, "1 if only a number or a date would answer and there is none"),
)
_SHARED: Final = tuple(one for one in CLAIM_FEATURES if one.name in FAULTS - {"name_missing"} | {"recall"})
FEATURES: Final[tuple[Feature, ...]] = (*_OWN, *_SHARED)
"""The features; those shared with the grounder mean there what they mean here, the question read as a claim."""


def features_of(
    asked: Asked, units: Sequence[Unit], compared: Compared, *, best: int, odds: Array, everything: Sequence[Unit]
) -> Mapping[str, float]:
    """Return the value of each feature.

    Args:
        asked: The question.
        units: The units that were open to choice.
        compared: The question compared with them.
        best: The place of the one that was chosen.
        odds: The ranking's log odds of each.
        everything: All units of the passages.
    """
    unit = units[best]
    shares = np.exp(odds - odds[best])
    shares /= shares.sum()
    inside = frozenset[str]().union(*(one.terms | one.context for one in everything if one.number == unit.number))
    anywhere = frozenset[str]().union(*(one.terms | one.context for one in everything))
    away = np.array([not says(inside, stem) for stem in asked.words])
    nowhere = np.array([not says(anywhere, stem) for stem in asked.words])
    is_name = np.array([stem in asked.names for stem in asked.words])
    unsaid = compared.hits[best] < 1.0
    faults = examine([asked.sentence], PreparedContexts.of([f"{unit.heading}\n{unit.text}"]), WordWeights()).features
    # A row that was chosen has been found to hold what is wanted, be it under the name of its column.
    want = None if unit.cells else asked.want
    return {
        "likeness": likeness(asked.text, unit.text),
        "lead": float(shares[best]),
        "lead_of_passage": float(sum(shares[i] for i, one in enumerate(units) if one.number == unit.number)),
        "nearest_missing": float(compared.sims[best][unsaid].max()) if unsaid.any() else 1.0,
        "missing_anywhere": float(compared.weights[nowhere].sum()),
        "name_missing": float(compared.weights[away & is_name].sum()),
        "kind_absent": float(want is not None and lacks(want, asked.text, unit.sentence)),
        **{feature.name: faults[feature.name] for feature in _SHARED},
    }
