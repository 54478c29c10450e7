"""Which budget stopped a search, said so that no text can come along."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["described"]

_VOCABULARY: Final = """
a after and as at before budget budgets by bytes call calls candidate candidates ceiling characters chunk
chunks context cost count cut deadline depth document documents during embedding end evaluated exceeded
exhausted few first for found hit hop hops in iteration iterations k kb latency length limit limited limits
many max maximum mb memory milliseconds minutes more ms of on only out over pass passes per quota quotas rate
reached request requests rerank reranked reranker reranking result results retrieval retrieved returned round
rounds s scan scanned search searches second seconds size step steps stopped than the time timed timeout to
token tokens too top total us usd was were window with
"""
_WORDS: Final = frozenset(_VOCABULARY.split())
"""What a description of a budget is made of, and what no question, answer or name is told by."""

_PARTS: Final = re.compile(r"[A-Za-z]+|\d+(?:[.,]\d+)*|[\s_.,:;()/%+=<>*-]+")
_MAX: Final = 200


def described(text: str) -> str | None:
    """Return a description that is made of numbers and known words; None for any other.

    Args:
        text: As `Token budget of 8192 exhausted after 47 chunks`, or `max_tokens=8192`.
    """
    parts = _PARTS.findall(text)
    if len(text) > _MAX or "".join(parts) != text:
        return None
    words = [part.lower() for part in parts if part[0].isalpha()]
    return text.strip() if words and all(word in _WORDS for word in words) else None
