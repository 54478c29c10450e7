"""Which sentences would answer a question best, and how likely they do.

Sentences are chosen greedily by the weight of the question's words they add. Names that a chosen sentence
brings in count as words to look for as well, which is how an answer spread over several documents is
followed from one to the next. Of tables only those rows are open to choice that `tables` finds to be meant.
Whether what was chosen is an answer is `answerability`'s to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spanforge.reference.answering.answerability import default_model, features_of
from spanforge.reference.answering.spans import Wanted, candidates, wanted
from spanforge.reference.answering.tables import open_to_choice
from spanforge.reference.answering.units import Unit, stems, units_of
from spanforge.reference.lexical import rarity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spanforge.reference.models import RetrievedDocument

MIN_GAIN = 0.2
"""A further sentence must add this share of the question's weight ..."""
MIN_GAIN_LED = 0.05
"""... or this one where a name in what is already chosen leads to it."""
HEADING_SHARE = 0.5
"""What a word counts that stands only in the headings over a sentence."""
MAX_UNITS = 4
_COMPOUND = re.compile(r"\b(?:and|or|as well as)\b|[,;]", re.IGNORECASE)
"""A question that may ask for more than one thing."""
_KIND = "\0kind"
"""Stands among the question's words for the kind of answer it wants; no text holds it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The sentences that come nearest to an answer.

    Attributes:
        units: In order of choice; empty where there is nothing to choose from.
        covered: Share in [0, 1] of the question's weight that they cover.
        features: What speaks for and against their being an answer; empty where there are none.
    """

    units: tuple[Unit, ...] = ()
    covered: float = 0.0
    features: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def answerability(self) -> float:
        """Probability in [0, 1] that they answer the question; 0 where there are none."""
        return default_model().probability(self.features) if self.units else 0.0

    @property
    def answers(self) -> bool:
        """Whether that is likely enough for an answer instead of a refusal."""
        return self.answerability >= default_model().threshold

    @property
    def answers_strictly(self) -> bool:
        """Whether it is likely enough where an answer that is none is the worse fault."""
        return self.answerability >= default_model().strict_threshold


def choose(question: str, documents: Sequence[RetrievedDocument]) -> Choice:
    """Choose sentences of the passages.

    Nothing is chosen where the question needs a kind of answer that is nowhere to be seen, or where no passage knows
    any of the names it asks about: what they say of other names is no answer.
    """
    units = units_of(documents)
    want = wanted(question)
    rows, sentences = open_to_choice(question, want, units)
    chosen, covered = _greedy(question, want, [*rows, *sentences])
    if not chosen:
        return Choice()
    if chosen[0].cells:
        chosen = [*rows, *(unit for unit in chosen if not unit.cells)]
    features = features_of(question, want, chosen, units, documents)
    return Choice() if features["name_nowhere"] == 1.0 else Choice(tuple(chosen), covered, features)


def _greedy(question: str, want: Wanted | None, units: Sequence[Unit]) -> tuple[list[Unit], float]:
    """Return the chosen units in order of choice, and the share of the question's weight they cover."""
    asked = stems(question) - ({want.measure} if want else set())
    if not asked or not units:
        return [], 0.0
    said = [_said(question, want, unit) for unit in units]
    still_open = rarity(asked, said)
    words = sum(still_open.values())
    if want is not None and want.expected:
        still_open[_KIND] = words / len(still_open)
    total = sum(still_open.values())
    one_fact = want is not None and want.expected and not _COMPOUND.search(question)
    chosen: list[Unit] = []
    names: set[str] = set()
    above: set[str] = set()
    left = set(range(len(units)))
    while left and len(chosen) < MAX_UNITS:
        if one_fact and chosen and _KIND not in still_open:
            break
        best = max(left, key=lambda i: (_gain(units[i], said[i], still_open, names, total), -i))
        led = bool(names & units[best].names)
        gain = _gain(units[best], said[best], still_open, set(), total)
        if gain < total * (MIN_GAIN_LED if led or not chosen else MIN_GAIN):
            break
        # What shares neither a name nor a word of the question with the rest speaks of something else.
        if chosen and not led and not said[best] & (asked - still_open.keys()):
            break
        left.discard(best)
        chosen.append(units[best])
        for term in said[best]:
            still_open.pop(term, None)
        above |= units[best].context
        names |= units[best].names - asked
    if want is not None and want.required and _KIND in still_open:
        return [], 0.0
    # That something of the wanted kind stands there is a reason to choose a sentence, not one to believe it.
    still_open.pop(_KIND, None)
    missing = sum(value * (1.0 - HEADING_SHARE * (term in above)) for term, value in still_open.items())
    return chosen, 1.0 - missing / words


def _said(question: str, want: Wanted | None, unit: Unit) -> frozenset[str]:
    if want is not None and want.expected and (unit.cells or candidates(question, want, unit.text)):
        return unit.terms | {_KIND}
    return unit.terms


def _gain(unit: Unit, said: frozenset[str], still_open: Mapping[str, float], names: set[str], total: float) -> float:
    own = sum(value for term, value in still_open.items() if term in said)
    near = sum(HEADING_SHARE * value for term, value in still_open.items() if term in unit.context)
    # A name is a reason to prefer one sentence over another, not a reason to say more.
    led = MIN_GAIN * total if own and names & unit.names else 0.0
    return own + near + led
