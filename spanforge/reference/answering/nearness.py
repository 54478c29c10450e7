"""How near words are in meaning, by the static vectors that the default embedder's wheel carries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spanforge.reference.embedding import Embedder, open_embedder
from spanforge.reference.failures import EmbeddingFailed

_REMEMBERED: Final = 16_384
"""Words whose vectors are kept, a kilobyte each; beyond that all are forgotten together."""
_vectors: dict[str, NDArray[np.float32]] = {}


def vectors_of(words: Sequence[str]) -> NDArray[np.float32]:
    """Return one unit vector a word, as rows; without the wheel all are zero, and no word is near another."""
    embedder = _embedder()
    if embedder is None:
        return np.zeros((len(words), 1), dtype=np.float32)
    unknown = [word for word in dict.fromkeys(words) if word not in _vectors]
    known = dict(zip(unknown, embedder.embed(unknown), strict=True)) if unknown else {}
    rows = [_vectors[word] if word in _vectors else known[word] for word in words]
    if len(_vectors) + len(known) > _REMEMBERED:
        _vectors.clear()
    _vectors.update(known)
    return np.array(rows, dtype=np.float32).reshape(len(words), embedder.dimensions)


def likeness(text: str, other: str) -> float:
    """Return how like two texts are in meaning as a whole, in [-1, 1]; 0 without the wheel."""
    embedder = _embedder()
    if embedder is None:
        return 0.0
    one, two = embedder.embed([text, other])
    return float(one @ two)


@cache
def _embedder() -> Embedder | None:
    try:
        return open_embedder("wordllama")
    except EmbeddingFailed:
        return None
