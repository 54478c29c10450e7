"""A light English stemmer, so that the grounder needs no dependency.

It removes inflection and the commonest derivational endings ("activation", "activated" and "activity" share a stem),
which is what matching a claim to its evidence needs. It does not aim at linguistically right stems.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from spanforge.reference.grounding.words import lines_of

_MIN_STEM: Final = 3
"""Letters an ending must leave behind; shorter remains are rarely the same word."""

_DERIVATIONAL: Final = (
    ("ization", ""), ("isation", ""), ("ational", ""), ("fulness", ""), ("iveness", ""), ("ousness", ""),
    ("ation", ""), ("ition", ""), ("ingly", ""), ("ement", ""), ("ility", ""), ("ivity", ""),
    ("ness", ""), ("ment", ""), ("ably", ""), ("ibly", ""), ("able", ""), ("ible", ""), ("ance", ""), ("ence", ""),
    ("tion", "t"), ("sion", "s"), ("ical", ""), ("ally", ""), ("ity", ""), ("ive", ""), ("ize", ""), ("ise", ""),
    ("ate", ""), ("ful", ""), ("ous", ""), ("ic", ""), ("al", ""), ("ly", ""),
)  # fmt: skip
"""Ending and what replaces it; the first that fits is taken, so longer ones stand first."""

_DERIVED_MIN_STEM: Final = 4
_IRREGULAR: Final = {form: base for base, *forms in lines_of("irregular") for form in forms}


def _strip_inflection(word: str) -> str:
    if word.endswith("ies") and len(word) > _MIN_STEM + 1:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    for ending in ("ing", "ied", "ed"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) >= _MIN_STEM and any(letter in "aeiouy" for letter in root):
            if ending == "ied":
                return root + "y"
            return root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
    return word


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of one lower-case word, at least three letters unless the word itself is shorter.

    Tokens with digits or outside ASCII letters come back unchanged.
    """
    word = _IRREGULAR.get(word, word)
    if len(word) <= _MIN_STEM or not (word.isascii() and word.isalpha()):
        return word
    word = _strip_inflection(word)
    for ending, replacement in _DERIVATIONAL:
        if word.endswith(ending) and len(word) - len(ending) >= _DERIVED_MIN_STEM:
            word = word[: len(word) - len(ending)] + replacement
            break
    if word.endswith("e") and len(word) > _MIN_STEM:
        word = word[:-1]
    if word.endswith(("ct", "ss")):
        word = word[:-1]  # "reduction" and "reduce", "suppression" and "suppress"
    if word.endswith("y") and len(word) > _MIN_STEM:
        word = word[:-1] + "i"
    return word
