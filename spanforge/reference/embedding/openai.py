"""Embeddings over HTTP, from any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spanforge.reference._extras import Untyped, load
from spanforge.reference.embedding.onnx import unit
from spanforge.reference.failures import EmbeddingFailed, Translated

_BATCH = 128
_NO_CLIENT = "The embedding client cannot be made; set OPENAI_API_KEY and OPENAI_BASE_URL."


class OpenAIEmbedder:
    """A model behind the official client.

    Args:
        model: Name of the model.
        client: A client of your own (base URL, key, time-outs, retries); absent, one from the client's
            environment.
    """

    dense_weight = 0.5

    def __init__(self, model: str = "text-embedding-3-small", *, client: Untyped = None) -> None:
        library = load("openai", "openai")
        self._error: type[Exception] = library.OpenAIError
        self.name = f"openai:{model}"
        self._model = model
        with Translated((self._error,), lambda _: EmbeddingFailed(_NO_CLIENT)):
            self._client = client or library.OpenAI()
        self.dimensions = int(self.embed(["length"]).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: list[list[float]] = []
        for i in range(0, len(texts), _BATCH):
            rows.extend(self._embed_batch([text or " " for text in texts[i : i + _BATCH]]))
        return unit(np.asarray(rows, dtype=np.float32))

    def _embed_batch(self, texts: list[str]) -> list[list[float]]:
        with Translated((self._error,), _unanswered):
            response = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
            return [list(item.embedding) for item in sorted(response.data, key=lambda item: item.index)]


def _unanswered(error: Exception) -> EmbeddingFailed:
    return EmbeddingFailed(f"The embedding endpoint did not answer ({type(error).__name__}).")
