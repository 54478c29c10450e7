"""What a negation in a sentence reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanforge.reference.grounding.lexicon import NEGATIONS

_SCOPE: Final = 5
"""Content words after a negation that it can deny."""

_ENDS: Final = frozenset(
    {*",;:()", "but", "although", "though", "however", "whereas", "while", "because", "yet", "except"}
)
"""Tokens that end a negation's reach."""

_FREE: Final = frozenset({"of", "from"})
"""What follows "free" where it denies: "free of sugar"."""
_EMPHASIS: Final = frozenset({"only", "just", "merely"})


def is_negation(tokens: Sequence[str], index: int) -> bool:
    """Tell whether a token denies what follows it; "not only" and "No. 2" do not."""
    word = tokens[index].lower().replace("\u2019", "'")
    following = tokens[index + 1].lower() if index + 1 < len(tokens) else ""
    if word not in NEGATIONS:
        return word == "free" and following in _FREE
    return following not in _EMPHASIS and not following[:1].isdigit()


def denied_tokens(tokens: Sequence[str], stems: Sequence[str]) -> frozenset[int]:
    """Return the places of the tokens with a content stem that are denied an odd number of times."""
    found: set[int] = set()
    remaining = 0
    odd = False
    for index, token in enumerate(tokens):
        if token.lower() in _ENDS:
            remaining, odd = 0, False
        elif is_negation(tokens, index):
            odd = not odd if remaining else True
            remaining = _SCOPE
        elif stems[index] and remaining:
            if odd:
                found.add(index)
            remaining -= 1
    return frozenset(found)
