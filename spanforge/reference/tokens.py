"""Counting tokens without a network.

The default counter is the tokenizer that the default embedder's wheel carries. It cuts finer than the
tokenizers of current chat models, so a budget kept by it is kept by them too. Where that wheel is absent, a
named estimate is used; which counter is at work shows in ``Pipeline.modes``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PIECE = re.compile(r"\w+|[^\w\s]", re.UNICODE)


class TokenCounter(Protocol):
    """Counts tokens; deterministic, and additive enough to sum passages against a budget."""

    @property
    def name(self) -> str:
        """Name of the counter, part of what makes a chunk's cut reproducible."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of ``text``, 0 for an empty one."""
        ...


class TokenizerCounter:
    """Counts with a ``tokenizers`` tokenizer."""

    def __init__(self, tokenizer: Tokenizer, name: str) -> None:
        self.tokenizer = tokenizer
        self.name = name

    def count(self, text: str) -> int:
        """Return the number of tokens without the special ones a model adds."""
        return len(self.tokenizer.encode(text, add_special_tokens=False))


class EstimateCounter:
    """Counts words and signs, long words as one token for every four characters."""

    name = "estimate-4"

    def count(self, text: str) -> int:
        """Return the estimate; it errs upwards for English prose."""
        return sum(1 + (end - start - 1) // 4 for start, end in (m.span() for m in _PIECE.finditer(text)))


@cache
def default_counter() -> TokenCounter:
    """Return the best counter that works offline here."""
    try:
        from spanforge.reference.embedding.wordllama import bundled_tokenizer
    except ImportError:
        return EstimateCounter()
    return TokenizerCounter(bundled_tokenizer(), "l2-supercat")
