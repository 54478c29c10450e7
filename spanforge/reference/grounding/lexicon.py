"""Closed word lists of English that the grounder reasons with.

All are short, written for this package, and looked up by stem unless said otherwise. A word missing from a list makes a
detector silent, never wrong.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import chain
from typing import Final

from spanforge.reference.grounding.stems import stem
from spanforge.reference.grounding.words import lines_of

FUNCTION_WORDS: Final = frozenset(chain(*lines_of("function")))
"""Words that carry no matter of their own, as written in lower case (not stems)."""
NEGATIONS: Final = frozenset(chain(*lines_of("negations")))
"""Words that deny what follows them, in lower case (not stems)."""
FRAME_WORDS: Final = frozenset(map(stem, chain(*lines_of("frame"))))
"""Stems by which a claim speaks about its source or joins facts; their absence from a source says little."""
QUALIFIERS: Final = frozenset(chain(*lines_of("qualifiers")))
"""Words of quantity, degree, order and certainty, in lower case (not stems)."""
APPROXIMATIONS: Final = frozenset(chain(*lines_of("approximations")))
"""Words that loosen the number after them, in lower case."""


def _valued(kind: str) -> dict[str, float]:
    return {name: float(value) for of, value, *names in lines_of("numbers") if of == kind for name in names}


MONTHS: Final = _valued("month")
WEEKDAYS: Final = _valued("weekday")
ONES: Final = _valued("one")
TENS: Final = _valued("ten")
NUMBER_WORDS: Final = {**ONES, **TENS, **_valued("number")}
ORDINAL_WORDS: Final = _valued("ordinal")
MULTIPLIERS: Final = _valued("multiplier")
UNITS: Final[dict[str, tuple[str, float]]] = {
    name: (dimension, float(factor)) for dimension, factor, *names in lines_of("units") for name in names
}
"""Unit as written → (dimension, factor to that dimension's base unit)."""

ALIKE_GROUPS: Final = tuple(map(tuple, lines_of("alike")))
"""Words that commonly stand for each other in a paraphrase, group by group, as written."""
OPPOSITE_SIDES: Final = tuple(
    tuple(tuple(side.split()) for side in " ".join(line).split("/")) for line in lines_of("opposed")
)
"""The pairs of opposite sides, in the words as written."""


def _related() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    opposite: dict[str, set[str]] = {}
    alike: dict[str, set[str]] = {}
    for written in OPPOSITE_SIDES:
        sides = [set(map(stem, side)) for side in written]
        for side, other in (sides, sides[::-1]):
            for word in side:
                opposite.setdefault(word, set()).update(other - {word})
                alike.setdefault(word, set()).update(side - {word})
    for group in (set(map(stem, words)) for words in ALIKE_GROUPS):
        for word in group:
            alike.setdefault(word, set()).update(group - {word})
    return opposite, {word: others - opposite.get(word, set()) for word, others in alike.items()}


_OPPOSITE, _ALIKE = _related()
OPPOSITES: Final = {word: tuple(sorted(others)) for word, others in _OPPOSITE.items()}
"""Stem → the stems that contradict it in the same place."""
ALIKE: Final = {word: tuple(sorted(others)) for word, others in _ALIKE.items()}
"""Stem → the stems that say the same, or the same direction ("rise" for "increase")."""


def says(said: Container[str], word: str) -> bool:
    """Tell whether a stem or a synonym of it is among what was said."""
    return word in said or any(other in said for other in ALIKE.get(word, ()))
