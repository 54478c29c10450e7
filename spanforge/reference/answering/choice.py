"""What is quoted in answer to a question, and how likely it is right.

The unit that the ranking puts first is chosen. A question with several parts takes further units for what the first
does not say: names that a chosen unit brings in lead to the next, which is how an answer spread over several documents
is followed. Of tables only those rows are open to choice that `tables` finds to be meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import numpy as np

from spanforge.reference.answering import certainty
from spanforge.reference.answering.asked import Asked
from spanforge.reference.answering.ranking import RANK_FEATURES, Array, Compared, compare
from spanforge.reference.answering.tables import open_to_choice
from spanforge.reference.answering.units import Unit, stems, units_of
from spanforge.reference.grounding.lexicon import says
from spanforge.reference.grounding.model import COEFFICIENTS_FILE, Model
from spanforge.reference.models import RetrievedDocument
from spanforge.reference.retrieving.understanding import ASIDE, parts_of

CERTAIN_AT: Final = 0.5
"""Probability from which an answer is given as one: it is more likely right than not."""
SHOWN_AT: Final = 0.1
"""Probability from which passages are shown as the closest ones; below it there is no information."""
MAX_UNITS: Final = 4
_FEWEST_NEW: Final = 0.2
"""A further unit must say this share more of the question ..."""
_FEWEST_LED: Final = 0.05
"""... or this one where a name in what is already chosen leads to it."""
_ABOUT_THE_SAME: Final = 0.5
"""Difference in log odds within which two units that say the same words of the question are told apart by place."""
_ROW_RIGHT: Final = 0.75
"""Least probability of a row: those that `tables` finds to be meant are right in nine of ten questions of the tests,
which the model, fitted on sentences, does not know."""
_ROW_COVERS: Final = 0.7  # From this share of the question's weight: a row says nothing of what it has no column for.
_WHOLLY: Final = 1.0 - 1e-9
_SEVERAL: Final = re.compile(r"\b(?:and|or|as well as)\b|[,;]|\?.*\?", re.IGNORECASE)
"""What may ask for more than one thing; where nothing is certain, only a second question does."""

ASKS_HOW: Final = re.compile(
    r"\bhow (?:do|does|can|could|should|to|is|are)\b|\bwhat (?:do|should|must) \w+ (?:have to |need to )?do\b"
    r"|\bsteps (?:to|for|of)\b", re.IGNORECASE
)  # fmt: skip
_STEP: Final = re.compile(r"^1[.)] ", re.MULTILINE)
_STEPS: Final = stems("steps")
_OPEN: Final = re.compile(r"(?!.*\bor\b).*\b(?:who|whom|whose|what|when|where|which|why|how)\b", re.IGNORECASE)
_KIND_MISSING: Final = [feature.name for feature in RANK_FEATURES].index("kind_missing")
_NAMED: Final = 0.5  # Share of the question's weight that the headings and the announcement of steps say.


@dataclass(frozen=True, slots=True)
class Models:
    """What was fitted.

    Attributes:
        ranking: Log odds that a unit holds the answer.
        certainty: Probability that the unit chosen is right.
    """

    ranking: Model
    certainty: Model

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"ranking": self.ranking.to_dict(), "certainty": self.certainty.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Models:
        """Read what ``to_dict`` wrote.

        Raises:
            ValueError: The features are not those of this version; train again.
        """
        ranking = Model.from_dict(data["ranking"], [one.name for one in RANK_FEATURES])
        return cls(ranking, Model.from_dict(data["certainty"], [one.name for one in certainty.FEATURES]))


@lru_cache(maxsize=1)
def default_models() -> Models:
    """Return the models of the committed coefficients, read once."""
    text = resources.files("spanforge.reference.answering").joinpath(COEFFICIENTS_FILE).read_text(encoding="utf-8")
    return Models.from_dict(json.loads(text))


@dataclass(frozen=True, slots=True)
class Choice:
    """The units that come nearest to an answer.

    Attributes:
        asked: The question as it was compared.
        units: In order of choice; empty where there is nothing to choose from.
        probability: How likely the first of them answers rightly, in [0, 1]; 0 where there are none.
        covered: Share in [0, 1] of the question's weight that they say.
    """

    asked: Asked = field(repr=False)
    units: tuple[Unit, ...] = ()
    probability: float = 0.0
    covered: float = 0.0

    @property
    def is_certain(self) -> bool:
        """Whether they are likely enough right to be given as an answer."""
        return self.probability >= CERTAIN_AT

    @property
    def is_shown(self) -> bool:
        """Whether they are likely enough right to be shown at all: with no word of the question nothing is."""
        return self.probability >= SHOWN_AT and self.covered > 0.0


@dataclass(frozen=True, slots=True)
class Field:
    """A question and all that is open to choice, compared.

    Attributes:
        units: What is open to choice, rows of tables first.
        rows: How many of them are rows.
        everything: All units of the passages.
    """

    asked: Asked = field(repr=False)
    units: Sequence[Unit]
    rows: int
    everything: Sequence[Unit]
    compared: Compared

    def odds(self, ranking: Model) -> Array:
        """Return the log odds that each unit holds the answer."""
        weights = [ranking.weights[feature.name] for feature in RANK_FEATURES]
        return ranking.intercept + self.compared.rows @ np.array(weights)

    def best(self, odds: Array) -> int:
        """Return the place of the unit with the best odds; of those that say as much, what the context puts first.

        That order knows the dates and the quality of documents, which no unit shows.
        """
        first = int(odds.argmax())
        if told := self.told_how():
            return max(told, key=odds.__getitem__)
        said = self.compared.hits.min(axis=1) - self.compared.rows[:, _KIND_MISSING]
        # A row that says all of the question comes before a sentence that does not, or has no answer of the kind.
        if said[: self.rows].max(initial=0.0) >= 1.0 > said[first]:
            return int(said[: self.rows].argmax())
        alike = (self.compared.hits == self.compared.hits[first]).all(axis=1) & (odds >= odds[first] - _ABOUT_THE_SAME)
        places = [place for place, is_alike in enumerate(alike.tolist()) if is_alike]
        return min(places, key=lambda place: (self.units[place].number, -float(odds[place])))

    def told_how(self) -> Mapping[int, float]:
        """Return the places of steps or a list, else of text, named like what is asked, and how far: lists one more."""
        found: dict[int, float] = {}
        asks_how = ASKS_HOW.search(self.asked.text)
        for place, unit in enumerate(self.units):
            is_step = bool(_STEP.search(unit.listing)) if asks_how else self._is_title(unit)
            if not is_step and not asks_how:
                continue
            context = unit.context | _STEPS
            named = float(self.compared.weights[[says(context, stem) for stem in self.asked.words]].sum())
            said = context | stems(unit.listing)
            if named >= (_NAMED if is_step else _WHOLLY) and all(says(said, stem) for stem in self.asked.words):
                found[place] = named + is_step
        return {place: named for place, named in found.items() if named >= max(found.values())}

    def _is_title(self, unit: Unit) -> bool:
        is_whole = unit.listing.startswith(("- ", "1")) and stems(unit.heading) == self.asked.words.keys()
        return is_whole and unit.heading.split()[0].lower() == self.asked.text.split()[0].lower()

    def features(self, odds: Array) -> Mapping[str, float]:
        """Return what speaks for and against the unit that is best."""
        return certainty.features_of(
            self.asked, self.units, self.compared, best=self.best(odds), odds=odds, everything=self.everything
        )


def field_of(question: str, documents: Sequence[RetrievedDocument]) -> Field | None:
    """Return what is open to choice; None where nothing is, or the question has no words to look for."""
    everything = units_of(documents)
    asked = Asked.of(question, everything)
    rows, sentences = open_to_choice(asked.text, asked.want, everything)
    # What says nothing but the question's own words answers only whether they are so.
    said = stems(asked.text) if _OPEN.match(asked.text) else frozenset[str]()
    units = [*rows, *(unit for unit in sentences if not said or unit.terms - said)]
    if not units or not asked.words:
        return None
    return Field(asked, units, len(rows), everything, compare(asked, units, everything, documents))


def choose(question: str, documents: Sequence[RetrievedDocument]) -> Choice:
    """Choose units of the passages: for a question that asks twice, what answers each part, as sure as the least."""
    parts = [_chosen(part, documents) for part in parts_of(question)]
    shown = [part for part in parts if part.is_shown]
    if len(parts) == 1 or not shown:
        return parts[0]
    units = tuple(dict.fromkeys(unit for part in shown for unit in part.units))[:MAX_UNITS]
    probability = max(SHOWN_AT, min(part.probability for part in parts))
    return Choice(Asked.of(question, units), units, probability, min(part.covered for part in shown))


def _chosen(question: str, documents: Sequence[RetrievedDocument]) -> Choice:
    found = field_of(question, documents)
    if found is None:
        return Choice(Asked.of(question, ()))
    models = default_models()
    odds = found.odds(models.ranking)
    best = found.best(odds)
    chosen = [*range(found.rows)] if best < found.rows else [best]
    probability = models.certainty.probability(found.features(odds))
    several = _SEVERAL if probability >= CERTAIN_AT else ASIDE
    if several.search(found.asked.text):
        chosen = _with_further(found, odds, chosen)
    covered = found.compared.hits[chosen].max(axis=0) @ found.compared.weights
    is_row = found.units[best].cells and covered >= _ROW_COVERS
    if is_row or found.told_how().get(best, 0.0) >= 1.0 + _WHOLLY:
        probability = max(probability, _ROW_RIGHT)
    return Choice(found.asked, tuple(found.units[place] for place in chosen), probability, float(covered))


def _with_further(found: Field, odds: Array, chosen: list[int]) -> list[int]:
    """Add to what is chosen the units that say what is missing, as long as each says enough of it."""
    said = found.compared.hits >= 1.0
    open_words = ~said[chosen].any(axis=0)
    while len(chosen) < MAX_UNITS and open_words.any():
        names = frozenset[str]().union(*(found.units[place].names for place in chosen)) - found.asked.words.keys()
        gains = (said & open_words) @ found.compared.weights
        led = np.array([bool(names & unit.names) for unit in found.units])
        enough = gains >= np.where(led, _FEWEST_LED, _FEWEST_NEW)
        enough[chosen] = False
        if not enough.any():
            break
        chosen = [*chosen, int(np.where(enough, gains + _FEWEST_NEW * led + odds / 1e6, -np.inf).argmax())]
        open_words &= ~said[chosen[-1]]
    return chosen
