"""Sentence encoders in ONNX form, from a folder: no framework, no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spanforge.reference._extras import load
from spanforge.reference.failures import EmbeddingFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_BATCH = 32


class OnnxEmbedder:
    """Mean of the last layer over a text's tokens, normalised.

    Args:
        folder: Holds ``model.onnx`` (itself or under ``onnx/``) and ``tokenizer.json``.
        max_tokens: Longer texts are cut; the encoder's own limit.
    """

    dense_weight = 0.5

    def __init__(self, folder: str, *, max_tokens: int = 512) -> None:
        root = Path(folder)
        model = next((root / name for name in _MODEL_FILES if (root / name).is_file()), None)
        if model is None or not (root / "tokenizer.json").is_file():
            raise EmbeddingFailed("The folder of an 'onnx:' embedder needs model.onnx and tokenizer.json.")
        self.name = f"onnx:{folder}"
        tokenizer = load("tokenizers", "onnx").Tokenizer.from_file(str(root / "tokenizer.json"))
        # The file presets a truncation made for training pairs, shorter than what the encoder can read.
        tokenizer.no_truncation()
        tokenizer.enable_truncation(max_tokens)
        tokenizer.enable_padding()
        self._tokenizer = tokenizer
        runtime = load("onnxruntime", "onnx")
        damaged = False
        try:
            self._session: Any = runtime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        except (RuntimeError, ValueError):
            damaged = True
        if damaged:
            raise EmbeddingFailed("The model file of the 'onnx:' embedder cannot be loaded.")
        self._inputs = {item.name for item in self._session.get_inputs()}
        self.dimensions = int(self.embed(["length"]).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        batches = [self._embed_batch(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
        return np.concatenate(batches)

    def _embed_batch(self, texts: Sequence[str]) -> NDArray[np.float32]:
        encodings = self._tokenizer.encode_batch([text.encode("utf-8", "replace").decode() for text in texts])
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        feeds = {
            "input_ids": np.array([encoding.ids for encoding in encodings], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([encoding.type_ids for encoding in encodings], dtype=np.int64),
        }
        failed = False
        output: Any = None
        try:
            output = self._session.run(None, {name: feeds[name] for name in self._inputs & feeds.keys()})[0]
        except (RuntimeError, ValueError):
            failed = True
        if failed:
            raise EmbeddingFailed("The ONNX model did not accept its input; is it a sentence encoder?")
        vectors = np.asarray(output, dtype=np.float32)
        if vectors.ndim == 3:  # noqa: PLR2004 - token vectors, to be averaged; a model that pools gives two axes
            weight = mask[:, :, None].astype(np.float32)
            vectors = (vectors * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-9)
        return unit(vectors)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows scaled to length 1; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
