"""How near words are in meaning, by the static vectors that the default embedder's wheel carries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from spanforge.reference.embedding import Embedder, open_embedder
from spanforge.reference.failures import EmbeddingFailed

_REMEMBERED: Final = 32_768
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
    return np.concatenate([np.zeros(0, dtype=np.float32), *rows]).reshape(len(words), embedder.dimensions)


def nearest(
    asked: NDArray[np.floating[Any]], known: NDArray[np.floating[Any]], texts: Sequence[Sequence[int]]
) -> NDArray[np.float64]:
    """Return for each text how near it comes to each word that is asked, by the nearest of its own, in [0, 1].

    Args:
        asked: Vectors of the words that are asked, as rows.
        known: Vectors of the words of all texts, as rows.
        texts: The rows of each text's words.
    """
    near = np.clip(known @ asked.T, 0.0, 1.0).astype(np.float64)
    return np.array([near[text].max(axis=0) if text else np.zeros(len(asked)) for text in texts])


def meanings(
    words: Sequence[str], weights: NDArray[np.float64], texts: Sequence[Sequence[str]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each text how near it comes to each word, and how like it is to them all, beside the other texts."""
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys(word for said in texts for word in said))}
    vectors = vectors_of([*words, *vocabulary]).astype(np.float64)
    asked, known = vectors[: len(words)], vectors[len(words) :]
    places = [[vocabulary[word] for word in said] for said in texts]
    means = np.array([known[place].mean(axis=0) if place else np.zeros(vectors.shape[1]) for place in places])
    centre = means.mean(axis=0)
    question = weights @ asked - centre
    means = means - centre
    lengths = np.linalg.norm(means, axis=1) * np.linalg.norm(question)
    return nearest(asked, known, places), (means @ question) / np.where(lengths > 0.0, lengths, 1.0)


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
