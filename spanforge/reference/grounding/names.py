"""Which tokens of a sentence are (parts of) proper names."""

from __future__ import annotations

from spanforge.reference.grounding.lexicon import MONTHS, WEEKDAYS
from spanforge.reference.grounding.sentence import Sentence

_ORDINARY_ENDINGS = ("ly", "ed", "ing", "al", "ar", "ive", "ic", "ous", "ness", "tion", "tions", "ment")
"""Endings of ordinary words that are merely rare; they tell only about a sentence's first word."""


def is_name(sentence: Sentence, index: int) -> bool:
    """Tell whether a content token looks like a name.

    Args:
        sentence: The sentence.
        index: Index of the token in ``sentence.tokens``.

    Returns:
        True for capitalised words inside a sentence, acronyms, and identifiers with digits. A sentence's first word is
        capitalised anyway and counts where another capitalised word follows, as in "Los Angeles". Months and weekdays
        are dates, not names.
    """
    if index:
        return index in sentence.marked_names
    token = sentence.tokens[0]
    if 0 in sentence.marked_names or not (sentence.stems[0] and token[0].isupper()):
        return 0 in sentence.marked_names
    if token.lower() in MONTHS or token.lower() in WEEKDAYS:
        return False
    following = sentence.tokens[1] if len(sentence.tokens) > 1 else ""
    return following[:1].isupper() and not token.endswith(_ORDINARY_ENDINGS)
