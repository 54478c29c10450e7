"""Counting tokens without a network.

The default counter sums the tokens of words, each cut once by the tokenizer that the default embedder's
wheel carries and remembered. That tokenizer never joins two words, and it cuts finer than those of current
chat models, so that a budget kept by it is kept by them too. Where the wheel is absent, a named estimate is
used; which counter is at work shows in ``Pipeline.modes``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Protocol

from spanforge.exceptions import MissingExtraError
from spanforge.reference.embedding.wordllama import bundled_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PIECE = re.compile(r"\w+|[^\w\s]", re.UNICODE)
_REMEMBERED_WORDS = 100_000
_LONGEST_WORD = 64
"""Longer runs without a space are counted in pieces of this length, which keeps counting linear."""


class TokenCounter(Protocol):
    """Counts tokens; deterministic, and additive enough to sum passages against a budget."""

    @property
    def name(self) -> str:
        """Name of the counter, part of what makes a chunk's cut reproducible."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``, 0 for an empty one."""
        ...


class WordTokenCounter:
    """Sums the tokens of the words and line ends of a text."""

    name = "l2-supercat-words"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._of_word = _Remembered(tokenizer)

    def count(self, text: str) -> int:
        """Return the number of tokens without the special ones a model adds."""
        return sum(map(self._of_word.__getitem__, text.split())) + text.count("\n")


class _Remembered(dict[str, int]):
    """Token counts by word, made at first sight, forgotten together when there are too many."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __missing__(self, word: str) -> int:
        pieces = [word[i : i + _LONGEST_WORD] for i in range(0, len(word), _LONGEST_WORD)]
        clean = [piece.encode("utf-8", "replace").decode() for piece in pieces]
        encodings = self._tokenizer.encode_batch(clean, add_special_tokens=False)
        total = sum(len(encoding) for encoding in encodings)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
            self[word] = total
        return total


class EstimateCounter:
    """Counts words and signs, long words as one token for every four characters."""

    name = "estimate-4"

    def count(self, text: str) -> int:
        """Return the estimate; within a quarter of the tokenizer's figure for English prose."""
        return sum(1 + (end - start - 1) // 4 for start, end in (m.span() for m in _PIECE.finditer(text)))


@cache
def default_counter() -> TokenCounter:
    """Return the best counter that works offline here."""
    try:
        return WordTokenCounter(bundled_tokenizer())
    except MissingExtraError:
        return EstimateCounter()
