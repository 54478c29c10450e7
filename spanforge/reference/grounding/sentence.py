"""One sentence with all that the detectors ask of it, each worked out at most once."""

from __future__ import annotations

from functools import cached_property, lru_cache

from spanforge.reference.grounding.amounts import Quantity
from spanforge.reference.grounding.lexicon import FUNCTION_WORDS, MONTHS, NEGATIONS, QUALIFIERS, WEEKDAYS
from spanforge.reference.grounding.negation import denied_tokens, is_negation
from spanforge.reference.grounding.quantities import may_have_quantities, quantities
from spanforge.reference.grounding.stems import stem
from spanforge.reference.grounding.text import TOKEN

_ORDINARY_ENDINGS = ("ly", "ed", "ing", "al", "ar", "ive", "ic", "ous", "ness", "tion", "tions", "ment")
"""Endings of ordinary words that are merely rare; they tell only about a sentence's first word."""


@lru_cache(maxsize=65_536)
def content_stem(token: str) -> str:
    """Return the stem of a token as written, or the empty string for a function word, a negation or a mark."""
    if token == "US":  # noqa: S105 - a word of a text, no secret
        return "u.s"
    word = token.lower().replace("\u2019", "'").rstrip(".")
    if word in FUNCTION_WORDS or word in NEGATIONS or not word[:1].isalnum():
        return ""
    return stem(word.removesuffix("'s"))


class Sentence:
    """One sentence of a claim or a context.

    Attributes:
        text: The sentence as written.
        start: Offset of its first character in the text it was cut from.
        tokens: Its tokens as written.
        stems: For each token its content stem, empty for function words and marks.
        words: Distinct content stems in order of appearance.
    """

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.tokens: list[str] = TOKEN.findall(text)
        self.stems = [content_stem(token) for token in self.tokens]
        self.words = tuple(dict.fromkeys(word for word in self.stems if word))

    def __repr__(self) -> str:
        return f"Sentence(start={self.start}, tokens={len(self.tokens)})"

    @cached_property
    def content(self) -> frozenset[str]:
        """Distinct content stems."""
        return frozenset(self.words)

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """Content stem → indexes of its tokens, ascending."""
        found: dict[str, list[int]] = {}
        for index, word in enumerate(self.stems):
            if word:
                found.setdefault(word, []).append(index)
        return found

    @cached_property
    def amounts(self) -> tuple[Quantity, ...]:
        """Numbers, dates and measures."""
        return quantities(self.text) if may_have_quantities(self.text, self.content) else ()

    @cached_property
    def initials(self) -> str:
        """The first letters of the content words, joined."""
        return "".join(word[0] for word in self.stems if word)

    @property
    def reading(self) -> tuple[str, ...]:
        """All words in lower case, in order, marks left out."""
        return tuple(token.lower() for token in self.tokens if token[0].isalnum())

    @cached_property
    def qualifiers(self) -> frozenset[str]:
        """Its words of quantity, degree, order and certainty."""
        return QUALIFIERS.intersection(self.reading)

    @cached_property
    def denied(self) -> frozenset[int]:
        """Indexes of the content tokens that a negation turns over."""
        return denied_tokens(self.tokens, self.stems)

    @cached_property
    def denies(self) -> bool:
        """Whether it has a negation anywhere."""
        return any(is_negation(self.tokens, index) for index in range(len(self.tokens)))

    @cached_property
    def marked_names(self) -> frozenset[int]:
        """Indexes of tokens that are written as names: capitals inside the sentence, acronyms, words with digits."""
        return frozenset(
            index for index, token in enumerate(self.tokens) if self.stems[index] and _is_marked(token, index)
        )

    def is_name(self, index: int) -> bool:
        """Tell whether a content token looks like (part of) a proper name.

        So do capitalised words inside a sentence, acronyms, and identifiers with digits. A sentence's first word is
        capitalised anyway and counts where another capitalised word follows, as in "Los Angeles". Months and weekdays
        are dates, not names.
        """
        if index or 0 in self.marked_names:
            return index in self.marked_names
        token = self.tokens[0]
        if not (self.stems[0] and token[0].isupper()) or token.lower() in MONTHS or token.lower() in WEEKDAYS:
            return False
        following = self.tokens[1] if len(self.tokens) > 1 else ""
        return following[:1].isupper() and not token.endswith(_ORDINARY_ENDINGS)


def _is_marked(token: str, index: int) -> bool:
    if not token[0].isupper():
        return token[0].isalpha() and any(letter.isdecimal() for letter in token)
    if token.lower() in MONTHS or token.lower() in WEEKDAYS:
        return False
    return index > 0 or (len(token) > 1 and token.isupper())
