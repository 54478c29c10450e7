"""How much of a file's own text was extracted: nothing is lost silently."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

ENOUGH: Final = 0.98
"""Share of a document's words below which it carries a warning."""
_WORD: Final = re.compile(r"\w+")
_NEAR: Final = 4_096
_NOT_WORD: Final = re.compile(r"[\W_]+")
_MOST_MISSES: Final = 2_000
"""Text nodes looked for in vain, after which the share found so far stands for the whole."""


def coverage(nodes: Iterable[str], text: str) -> float:
    """Return the share in [0, 1] of the words of text nodes that stand in a text.

    A node counts as found where its letters and digits stand in the text one behind the other: words that the file cuts
    in pieces are whole in the text. Of any other node, those of its words count that stand anywhere.
    """
    squeezed, known = _squeezed(text), set(_words(text))
    total = found = misses = position = 0
    for node in nodes:
        words, letters = _words(node), _squeezed(node)
        total += len(words)
        # Most nodes stand in the order of the text, so that the search is short.
        place = squeezed.find(letters, position, position + len(letters) + _NEAR)
        if place < 0:
            place = squeezed.find(letters)
        if place >= 0:
            found, position = found + len(words), place + len(letters)
            continue
        found += sum(word in known for word in words)
        misses += 1
        if misses > _MOST_MISSES:
            break
    return found / total if total else 1.0


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _squeezed(text: str) -> str:
    return _NOT_WORD.sub("", unicodedata.normalize("NFKC", text)).casefold()
