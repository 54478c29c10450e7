"""Sentence encoders in ONNX form, from a folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spanforge.reference._onnx import OnnxModel
from spanforge.reference.failures import EmbeddingFailed

_BATCH = 32


class OnnxEmbedder:
    """Mean of the last layer over a text's tokens, normalised.

    Args:
        folder: Holds ``model.onnx`` (itself or under ``onnx/``) and ``tokenizer.json``.
        max_tokens: Longer texts are cut; the encoder's own limit.
    """

    dense_weight = 0.5

    def __init__(self, folder: str, *, max_tokens: int = 512) -> None:
        self.name = f"onnx:{folder}"
        self._model = OnnxModel(folder, max_tokens, EmbeddingFailed)
        self.dimensions = int(self.embed(["length"]).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        batches = [self._embed_batch(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
        return np.concatenate(batches)

    def _embed_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors, mask = self._model.run(texts)
        if vectors.ndim == 3:  # noqa: PLR2004 - token vectors, to be averaged; a model that pools gives two axes
            weight = mask[:, :, None].astype(np.float32)
            vectors = (vectors * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-9)
        return unit(vectors)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows scaled to length 1; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
