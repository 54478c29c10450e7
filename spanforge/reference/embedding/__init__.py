"""Turning text into vectors: a protocol, four engines, and one place that opens them by name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spanforge.exceptions import MissingExtraError
from spanforge.reference.failures import EmbeddingFailed, InvalidInput, Translated

__all__ = ["Embedder", "open_embedder"]

_ENGINES = {
    "wordllama": ("wordllama", "WordLlamaEmbedder"),
    "onnx": ("onnx", "OnnxEmbedder"),
    "sentence-transformers": ("sentence_transformers", "SentenceTransformerEmbedder"),
    "openai": ("openai", "OpenAIEmbedder"),
}


class Embedder(Protocol):
    """Turns texts into unit vectors of one fixed length."""

    @property
    def name(self) -> str:
        """Specification that opens the same embedder again; part of every fingerprint and event."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def dense_weight(self) -> float:
        """Weight in [0, 1] of its similarity in the weighted fusion with BM25, as measured for this kind."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, as rows.

        Raises:
            EmbeddingFailed: The model did not answer.
        """
        ...


def open_embedder(specification: str) -> Embedder:
    """Open an embedder by name.

    Args:
        specification: ``wordllama``; ``onnx:DIR`` (a folder with ``model.onnx`` and ``tokenizer.json``);
            ``sentence-transformers:NAME``; ``openai:MODEL`` (any compatible endpoint, by the client's own
            settings).

    Raises:
        InvalidInput: No engine of this name.
        EmbeddingFailed: The model or its package is missing. Nothing else is used in its place.
    """
    engine, _, argument = specification.partition(":")
    entry = _ENGINES.get(engine)
    if entry is None:
        raise InvalidInput(f"embedding_model must name one of {', '.join(_ENGINES)}.")
    with Translated((MissingExtraError,), lambda error: EmbeddingFailed(str(error))):
        module = importlib.import_module(f"spanforge.reference.embedding.{entry[0]}")
        factory: Any = getattr(module, entry[1])
        return factory(argument) if argument else factory()
