"""A question as it is compared with passages: however it is capitalised, and with its typing errors set right.

Names are what the passages write as names, whatever the question does; a word that no passage has is read as the one
word of theirs that it is a slip away from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from spanforge.reference.answering.spans import MEASURES, Wanted, wanted
from spanforge.reference.answering.units import Unit, words_of
from spanforge.reference.grounding.sentence import Sentence, content_stem
from spanforge.reference.grounding.text import TOKEN
from spanforge.reference.lexical import meant_by

MAX_QUESTION_CHARS: Final = 4_096


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
    stem = content_stem(lowered)
    if not stem or lowered in MEASURES:
        return lowered
    meant = lowered if lowered in written or stem in known.values() else meant_by(lowered, known)
    return written.get(meant, lowered)
