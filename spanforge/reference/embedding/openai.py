"""Embeddings over HTTP, from any endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spanforge.reference._extras import Untyped, load
from spanforge.reference.embedding.onnx import unit
from spanforge.reference.failures import EmbeddingFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_BATCH = 128


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
        failed = False
        try:
            self._client = client or library.OpenAI()
        except self._error:
            failed = True
        if failed:
            raise EmbeddingFailed("The embedding client cannot be made; set OPENAI_API_KEY and OPENAI_BASE_URL.")
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
        failure = ""
        try:
            response = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
            return [list(item.embedding) for item in sorted(response.data, key=lambda item: item.index)]
        except self._error as error:
            # The client's error quotes the request; only its kind leaves this block.
            failure = type(error).__name__
        raise EmbeddingFailed(f"The embedding endpoint did not answer ({failure}).")
