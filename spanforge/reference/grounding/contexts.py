"""Contexts made ready for many claims: sentences, stems and an inverted index over them.

Preparing costs one pass over the text and is remembered for a bounded number of contexts, because a service meets the
same chunks again and again. What a single claim then costs depends on the claim and on the sentences it touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from spanforge.reference.grounding.amounts import AmountIndex
from spanforge.reference.grounding.sentence import Sentence
from spanforge.reference.grounding.text import sentence_spans

_REMEMBERED: Final = 512
_REMEMBERED_SETS: Final = 16
_REMEMBERED_CHARS: Final = 16_384
"""Longer contexts, and sets of contexts many times as long, are prepared anew: what is remembered stays small."""

_SHORT_WORD: Final = 6
_SHORT_BEGINNING: Final = 4


def sentences_of(text: str) -> tuple[Sentence, ...]:
    """Cut a text into sentences; see ``text.sentence_spans`` for the bounds."""
    return tuple(Sentence(text[start:end], start) for start, end in sentence_spans(text))


_sentences_remembered = lru_cache(maxsize=_REMEMBERED)(sentences_of)


@dataclass(frozen=True)
class PreparedContexts:
    """Several contexts as one sequence of sentences with an inverted index.

    Attributes:
        sentences: All sentences, context by context.
        owners: For each sentence the index of its context.
        postings: Content stem → indexes of the sentences that contain it, ascending.
    """

    sentences: tuple[Sentence, ...] = field(repr=False)
    owners: tuple[int, ...] = field(repr=False)
    postings: dict[str, list[int]] = field(repr=False)

    @classmethod
    def of(cls, contexts: Sequence[str]) -> PreparedContexts:
        """Prepare contexts in their given order; what was prepared lately is remembered."""
        given = tuple(contexts)
        is_small = sum(map(len, given)) <= _REMEMBERED_CHARS * _REMEMBERED_SETS
        return _prepared_remembered(given) if is_small else _prepare(given)

    def around(self, number: int) -> tuple[Sentence, ...]:
        """Return a sentence with its neighbours in the same context."""
        owner = self.owners[number]
        first = number - 1 if number and self.owners[number - 1] == owner else number
        last = number + 1 if number + 1 < len(self.owners) and self.owners[number + 1] == owner else number
        return self.sentences[first : last + 1]

    def mentions_acronym(self, acronym: str) -> bool:
        """Tell whether the words of some sentence begin with an acronym's letters, given in lower case, in order."""
        return acronym in self._initials

    def states(self, sentence: Sentence) -> bool:
        """Tell whether a sentence of the contexts reads the same, word by word."""
        return sentence.reading in self._readings

    @cached_property
    def _readings(self) -> frozenset[tuple[str, ...]]:
        return frozenset(sentence.reading for sentence in self.sentences)

    @cached_property
    def _initials(self) -> str:
        return "\n".join(sentence.initials for sentence in self.sentences)

    def has_derived(self, word: str) -> bool:
        """Tell whether the contexts have a word with the same first letters ("Libyan" for "Libya")."""
        beginning = word[: _SHORT_BEGINNING if len(word) <= _SHORT_WORD else _SHORT_BEGINNING + 1]
        return f"\n{beginning}" in self._vocabulary

    @cached_property
    def _vocabulary(self) -> str:
        """All stems on lines of their own: one search in it is faster than many comparisons."""
        return "\n" + "\n".join(self.postings)

    @cached_property
    def amounts(self) -> AmountIndex:
        """All numbers, dates and measures in the contexts."""
        return AmountIndex(amount for sentence in self.sentences for amount in sentence.amounts)


def _prepare(contexts: tuple[str, ...]) -> PreparedContexts:
    sentences: list[Sentence] = []
    owners: list[int] = []
    for number, context in enumerate(contexts):
        cut = _sentences_remembered(context) if len(context) <= _REMEMBERED_CHARS else sentences_of(context)
        sentences.extend(cut)
        owners.extend([number] * len(cut))
    return PreparedContexts(tuple(sentences), tuple(owners), _index(sentences))


_prepared_remembered = lru_cache(maxsize=_REMEMBERED_SETS)(_prepare)


def _index(sentences: Sequence[Sentence]) -> dict[str, list[int]]:
    postings: dict[str, list[int]] = {}
    for number, sentence in enumerate(sentences):
        for word in sentence.words:
            if word in postings:
                postings[word].append(number)
            else:
                postings[word] = [number]
    return postings
