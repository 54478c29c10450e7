"""Models of the sentence-transformers library, for those who have it and a network or a local copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spanforge.reference._extras import load
from spanforge.reference.failures import EmbeddingFailed, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


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
        failed = False
        try:
            self._model: Any = library.SentenceTransformer(model)
        except (OSError, ValueError, RuntimeError):
            failed = True
        if failed:
            raise EmbeddingFailed("The sentence-transformers model cannot be loaded; check its name and the network.")
        self.name = f"sentence-transformers:{model}"
        self.dimensions = int(self._model.get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        failed = False
        vectors: Any = None
        try:
            vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        except (RuntimeError, ValueError):
            failed = True
        if failed:
            raise EmbeddingFailed
        return np.asarray(vectors, dtype=np.float32)
