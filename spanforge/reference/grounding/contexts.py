"""Contexts made ready for many claims: sentences, stems and an inverted index over them.

Preparing costs one pass over the text and is remembered for a bounded number of contexts, because a service meets the
same chunks again and again. What a single claim then costs depends on the claim and on the sentences it touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from spanforge.reference.grounding.amounts import AmountIndex
from spanforge.reference.grounding.lexicon import FUNCTION_WORDS, NEGATIONS
from spanforge.reference.grounding.quantities import Quantity, quantities
from spanforge.reference.grounding.stems import stem
from spanforge.reference.grounding.text import TOKEN, sentence_spans

_REMEMBERED: Final = 512
_REMEMBERED_CHARS: Final = 16_384
"""Longer contexts are prepared anew each time, so that what is remembered stays small."""


_SHORT_WORD: Final = 6
_SHORT_BEGINNING: Final = 4


@lru_cache(maxsize=65_536)
def content_stem(token: str) -> str:
    """Return the stem of a token as written, or the empty string for a function word or a negation."""
    if token == "US":  # noqa: S105 - a word of a text, no secret
        return "u.s"
    word = token.lower().replace("\u2019", "'").rstrip(".")
    if word in FUNCTION_WORDS or word in NEGATIONS or not word[:1].isalnum():
        return ""
    return stem(word.removesuffix("'s"))


def beginning(word: str) -> str:
    """Return the letters that a stem shares with words derived from it."""
    return word[: _SHORT_BEGINNING if len(word) <= _SHORT_WORD else _SHORT_BEGINNING + 1]


class Sentence:
    """One sentence of a claim or a context.

    Attributes:
        text: The sentence as written.
        start: Offset of its first character in the text it was cut from.
        tokens: Its tokens as written.
        stems: For each token its content stem, empty for function words and marks.
        words: Distinct content stems in order of appearance.
    """

    __slots__ = ("_amounts", "_content", "_initials", "_places", "start", "stems", "text", "tokens", "words")

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.tokens: list[str] = TOKEN.findall(text)
        self.stems = [content_stem(token) for token in self.tokens]
        self.words = tuple(dict.fromkeys(word for word in self.stems if word))
        self._content: frozenset[str] | None = None
        self._amounts: tuple[Quantity, ...] | None = None
        self._places: dict[str, int] | None = None
        self._initials: str | None = None

    def __repr__(self) -> str:
        return f"Sentence(start={self.start}, tokens={len(self.tokens)})"

    @property
    def content(self) -> frozenset[str]:
        """Distinct content stems."""
        if self._content is None:
            self._content = frozenset(self.words)
        return self._content

    @property
    def amounts(self) -> tuple[Quantity, ...]:
        """Numbers, dates and measures in it."""
        if self._amounts is None:
            self._amounts = quantities(self.text)
        return self._amounts

    @property
    def initials(self) -> str:
        """The first letters of its content words, joined."""
        if self._initials is None:
            self._initials = "".join(word[0] for word in self.stems if word)
        return self._initials

    @property
    def places(self) -> dict[str, int]:
        """Content stem → index of its first token."""
        if self._places is None:
            self._places = {}
            for index, word in enumerate(self.stems):
                if word:
                    self._places.setdefault(word, index)
        return self._places


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
    def of(cls, contexts: Iterable[str]) -> PreparedContexts:
        """Prepare contexts in their given order."""
        sentences: list[Sentence] = []
        owners: list[int] = []
        for number, context in enumerate(contexts):
            cut = _sentences_remembered(context) if len(context) <= _REMEMBERED_CHARS else sentences_of(context)
            sentences.extend(cut)
            owners.extend([number] * len(cut))
        return cls(tuple(sentences), tuple(owners), _index(sentences))

    def around(self, number: int) -> tuple[Sentence, ...]:
        """Return a sentence with its neighbours in the same context."""
        owner = self.owners[number]
        first = number - 1 if number and self.owners[number - 1] == owner else number
        last = number + 1 if number + 1 < len(self.owners) and self.owners[number + 1] == owner else number
        return self.sentences[first : last + 1]

    def mentions_acronym(self, acronym: str) -> bool:
        """Tell whether the words of some sentence begin with an acronym's letters, given in lower case, in order."""
        return acronym in self._initials

    @cached_property
    def _initials(self) -> str:
        return "\n".join(sentence.initials for sentence in self.sentences)

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """First letters of all stems, as many as tell a derived word ("Libyan") from another."""
        return frozenset(beginning(word) for word in self.postings)

    @cached_property
    def amounts(self) -> AmountIndex:
        """All numbers, dates and measures in the contexts."""
        return AmountIndex(amount for sentence in self.sentences for amount in sentence.amounts)


def _index(sentences: Sequence[Sentence]) -> dict[str, list[int]]:
    postings: dict[str, list[int]] = {}
    for number, sentence in enumerate(sentences):
        for word in sentence.words:
            if word in postings:
                postings[word].append(number)
            else:
                postings[word] = [number]
    return postings
