"""Which tokens of a sentence are (parts of) proper names."""

from __future__ import annotations

from collections.abc import Callable

from spanforge.reference.grounding.lexicon import MONTHS, WEEKDAYS
from spanforge.reference.grounding.sentence import Sentence

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
    if index:
        return index in sentence.marked_names
    token = sentence.tokens[0]
    if 0 in sentence.marked_names or not (sentence.stems[0] and token[0].isupper()):
        return 0 in sentence.marked_names
    if token.lower() in MONTHS or token.lower() in WEEKDAYS:
        return False
    following = sentence.tokens[1] if len(sentence.tokens) > 1 else ""
    needed = _UNCOMMON if following[:1].isupper() else _UNKNOWN
    return rarity(sentence.stems[0]) >= needed and not token.endswith(_ORDINARY_ENDINGS)
