"""A transformer in ONNX form with its tokenizer, from a folder: no framework, no network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spanforge.reference._extras import load
from spanforge.reference.failures import RagFailure, Translated

_MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")

_ERRORS = (
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
)
"""The runtime's own errors, which have no base but Exception."""
_REFUSED_INPUT = "The ONNX model did not accept its input; is it a model of this kind?"


class OnnxModel:
    """Texts, or pairs of texts, in; the model's first output and the mask of real tokens out.

    Args:
        folder: Holds ``model.onnx`` (itself or under ``onnx/``) and ``tokenizer.json``.
        max_tokens: Longer texts are cut; the encoder's own limit.
        failure: Makes the error that is raised where something is wrong, from a sentence.

    Raises:
        MissingExtraError: The extra ``onnx`` is not installed.
    """

    def __init__(self, folder: str, max_tokens: int, failure: Callable[[str], RagFailure]) -> None:
        root = Path(folder)
        self._failure = failure
        model = next((root / name for name in _MODEL_FILES if (root / name).is_file()), None)
        if model is None or not (root / "tokenizer.json").is_file():
            raise failure("The folder of an 'onnx:' model needs model.onnx and tokenizer.json.")
        tokenizer = load("tokenizers", "onnx").Tokenizer.from_file(str(root / "tokenizer.json"))
        # The file presets a truncation made for training pairs, shorter than what the encoder can read.
        tokenizer.no_truncation()
        tokenizer.enable_truncation(max_tokens)
        tokenizer.enable_padding()
        self._tokenizer = tokenizer
        runtime = load("onnxruntime", "onnx")
        states = runtime.capi.onnxruntime_pybind11_state
        self._errors: tuple[type[Exception], ...] = (RuntimeError, ValueError, *(getattr(states, n) for n in _ERRORS))
        with Translated(self._errors, lambda _: failure("The model file of the 'onnx:' folder cannot be loaded.")):
            self._session: Any = runtime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        self._inputs = {item.name for item in self._session.get_inputs()}

    def run(self, texts: Sequence[str | tuple[str, str]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the output, a row a text, and the attention mask."""
        encodings = self._tokenizer.encode_batch([_well_formed(text) for text in texts])
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        feeds = {
            "input_ids": np.array([encoding.ids for encoding in encodings], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([encoding.type_ids for encoding in encodings], dtype=np.int64),
        }
        with Translated(self._errors, lambda _: self._failure(_REFUSED_INPUT)):
            output = self._session.run(None, {name: feeds[name] for name in self._inputs & feeds.keys()})[0]
        return np.asarray(output, dtype=np.float32), mask


def _well_formed(text: str | tuple[str, str]) -> str | tuple[str, str]:
    """Replace lone surrogates, which the tokenizer refuses."""
    if isinstance(text, tuple):
        return text[0].encode("utf-8", "replace").decode(), text[1].encode("utf-8", "replace").decode()
    return text.encode("utf-8", "replace").decode()
