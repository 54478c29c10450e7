"""The default embedder: static word vectors that travel inside their wheel. No network, no GPU."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spanforge.reference._extras import Untyped, load

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BATCH = 256


@cache
def _package() -> Untyped:
    # Importing it configures the root logger, which belongs to the application. Where a handler stands
    # already, that call does nothing; so one stands there for the length of the import.
    placeholder = logging.NullHandler()
    logging.root.addHandler(placeholder)
    try:
        return load("wordllama", "reference")
    finally:
        logging.root.removeHandler(placeholder)


@cache
def _model() -> Untyped:
    package = _package()
    # The loader looks into a cache folder first and downloads what it misses; the wheel's own folder holds
    # it all.
    return package.WordLlama.load(cache_dir=Path(package.__file__).parent, disable_download=True)


def bundled_tokenizer() -> Tokenizer:
    """Return a private copy of the tokenizer in the wheel, without padding or truncation."""
    package = _package()
    file = Path(package.__file__).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
    tokenizer = load("tokenizers", "reference").Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class WordLlamaEmbedder:
    """Mean of static token vectors in 256 dimensions, normalised."""

    name = "wordllama"
    dimensions = 256
    dense_weight = 0.3

    def __init__(self) -> None:
        self._model = _model()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text; a text without any known token gives the zero vector."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        # Lone surrogates cannot cross into the tokenizer.
        clean = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        vectors = np.asarray(self._model.embed(clean, norm=True, batch_size=_BATCH), dtype=np.float32)
        return np.nan_to_num(vectors, copy=False)
