"""A question as it is compared with passages: however it is capitalised, and with its typing errors set right.

Names are what the passages write as names, whatever the question does; a word that no passage has is read as the one
word of theirs that it is a slip away from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from spanforge.reference.answering.spans import Wanted, wanted
from spanforge.reference.answering.units import Unit, words_of
from spanforge.reference.grounding.lexicon import ALIKE
from spanforge.reference.grounding.sentence import Sentence, content_stem
from spanforge.reference.grounding.text import TOKEN

MAX_QUESTION_CHARS: Final = 4_096
_SHORTEST_SLIP: Final = 5
"""Letters of a word from which a slip in it is looked for; shorter words are too often another word."""


@dataclass(frozen=True)
class Asked:
    """A question, read against the passages that may answer it.

    Attributes:
        text: As it is compared, names written as the passages write them.
        want: What kind of answer it wants, where that is known.
    """

    text: str = field(repr=False)
    want: Wanted | None

    @classmethod
    def of(cls, question: str, units: Sequence[Unit]) -> Asked:
        """Read a question."""
        written = _written(units)
        known = {word: content_stem(word) for word in written}
        text = TOKEN.sub(lambda match: _as_written(match[0], written, known), question[:MAX_QUESTION_CHARS])
        return cls(text, wanted(text))

    @cached_property
    def words(self) -> dict[str, str]:
        """Its words that carry meaning, by stem, without the one that only says what kind of answer is wanted."""
        measure = self.want.measure if self.want else ""
        words = dict(words_of(self.text))
        return {stem: word.lower() for stem, word in words.items() if stem != measure} or words

    @cached_property
    def sentence(self) -> Sentence:
        """Itself as the grounder reads a sentence."""
        return Sentence(self.text, 0)

    @cached_property
    def names(self) -> frozenset[str]:
        """Stems of its names."""
        return frozenset(self.sentence.stems[index] for index in self.sentence.marked_names)


def says(said: Container[str], stem: str) -> bool:
    """Tell whether a stem or a synonym of it is among what was said."""
    return stem in said or any(other in said for other in ALIKE.get(stem, ()))


def _written(units: Sequence[Unit]) -> dict[str, str]:
    """Return how the passages write each word, most often, by the word in lower case."""
    forms: Counter[str] = Counter()
    opening: Counter[str] = Counter()
    for unit in units:
        for said in [cell.value for cell in unit.cells] or [unit.sentence]:
            tokens = TOKEN.findall(said)
            # What begins a sentence has a capital whatever it is; a name in a cell has one in each of its words.
            is_name = bool(unit.cells) and all(token[0].isupper() for token in tokens if content_stem(token))
            forms.update(tokens if is_name else tokens[1:])
            opening.update(token.lower() for token in tokens[:1])
        opening.update(token.lower() for token in TOKEN.findall(unit.heading))
        opening.update(token.lower() for cell in unit.cells for token in TOKEN.findall(cell.column))
    written: dict[str, str] = {}
    for form, _ in forms.most_common():
        written.setdefault(form.lower(), form)
    return {word: word for word in opening} | written


def _as_written(token: str, written: dict[str, str], known: dict[str, str]) -> str:
    lowered = token.lower()
    if not content_stem(lowered):
        return lowered
    found = written.get(lowered)
    return found or written.get(_meant_by(lowered, known), lowered)


def _meant_by(word: str, known: dict[str, str]) -> str:
    """Return the one known word that is a slip away, and the word itself where it is known, or not just one is."""
    if len(word) < _SHORTEST_SLIP or not word.isalpha() or content_stem(word) in known.values():
        return word
    near = [other for other in known if abs(len(other) - len(word)) <= 1 and _is_slip(word, other)]
    return near[0] if len({known[other] for other in near}) == 1 else word


def _is_slip(word: str, other: str) -> bool:
    """Tell whether one letter too many, too few, wrong, or two that changed places make one word of the other."""
    start = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    if start == 0:
        return False
    left, right = word[start:], other[start:]
    return (
        left[1:] == right
        or left == right[1:]
        or left[1:] == right[1:]
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )
