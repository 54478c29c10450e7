"""Models of the sentence-transformers library, for those who have it and a network or a local copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanforge.reference._extras import load
from spanforge.reference.failures import EmbeddingFailed, InvalidInput, Translated

_NOT_LOADED = "The sentence-transformers model cannot be loaded; check its name and the network."


class SentenceTransformerEmbedder:
    """One of the library's models, normalised.

    Args:
        model: Name or folder, as the library takes it.
    """

    dense_weight = 0.5

    def __init__(self, model: str = "") -> None:
        if not model:
            raise InvalidInput("embedding_model: 'sentence-transformers:' needs the name or folder of a model.")
        library = load("sentence_transformers", "sentence-transformers")
        with Translated((OSError, ValueError, RuntimeError), lambda _: EmbeddingFailed(_NOT_LOADED)):
            self._model: Any = library.SentenceTransformer(model)
        self.name = f"sentence-transformers:{model}"
        self.dimensions = int(self._model.get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        with Translated((RuntimeError, ValueError), lambda _: EmbeddingFailed()):
            vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)
