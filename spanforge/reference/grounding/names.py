"""Which tokens of a sentence are (parts of) proper names."""

from __future__ import annotations

from collections.abc import Callable

from spanforge.reference.grounding.contexts import Sentence
from spanforge.reference.grounding.lexicon import MONTHS, WEEKDAYS

_UNKNOWN = 0.999
"""Rarity from which a capitalised first word is taken for a name: the background text does not know it."""

_UNCOMMON = 0.55
"""The same where the next word is capitalised too, as in "Los Angeles"."""


_ORDINARY_ENDINGS = ("ly", "ed", "ing", "al", "ar", "ive", "ic", "ous", "ness", "tion", "tions", "ment")
"""Endings of ordinary words that are merely rare; they tell only about a sentence's first word."""


def is_name(sentence: Sentence, index: int, rarity: Callable[[str], float]) -> bool:
    """Tell whether a content token looks like a name.

    Args:
        sentence: The sentence.
        index: Index of the token in ``sentence.tokens``.
        rarity: Rarity of a stem in [0, 1]; decides about the first word, which is capitalised anyway.

    Returns:
        True for capitalised words inside a sentence, acronyms, identifiers with digits, and first words that are
        rare or followed by another capitalised word. Months and weekdays are dates, not names.
    """
    token = sentence.tokens[index]
    if not sentence.stems[index] or token.lower() in MONTHS or token.lower() in WEEKDAYS:
        return False
    if not token[0].isupper():
        return token[0].isalpha() and any(letter.isdecimal() for letter in token)
    if index or (len(token) > 1 and token.isupper()):
        return True
    following = sentence.tokens[1] if len(sentence.tokens) > 1 else ""
    needed = _UNCOMMON if following[:1].isupper() else _UNKNOWN
    return rarity(sentence.stems[0]) >= needed and not token.endswith(_ORDINARY_ENDINGS)
