"""A document read, cut and, with the bundled embedder, embedded in a child process: what goes there, what comes back.

There it can be stopped at any time, is held to what it may cost, and does not compute beside those who ask.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import astuple
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spanforge.reference.embedding import Embedder, open_embedder
from spanforge.reference.embedding.wordllama import WordLlamaEmbedder
from spanforge.reference.ingesting.chunking import Chunk, Chunker
from spanforge.reference.lexical import under_heading
from spanforge.reference.parsing import ParsedDocument
from spanforge.reference.parsing.reading import facts_of, given, unpacked
from spanforge.reference.parsing.registry import read
from spanforge.reference.tokens import default_counter
from spanforge.reference.workers import WORKERS, Limits

if TYPE_CHECKING:
    # A child that reads documents starts without pydantic.
    from spanforge.reference.models import Document

Vectors: TypeAlias = "NDArray[np.float32] | None"
_TASK: Final = f"{__name__}:in_child"


def prepare(
    document: Document,
    scope: str,
    chunker: Chunker,
    embedder: Embedder | None,
    *,
    limits: Limits,
    stop: Callable[[], bool],
) -> tuple[ParsedDocument, list[Chunk], Vectors]:
    """Return what is told of a document, its passages, and their vectors where the child could make them.

    Args:
        document: What is read.
        scope: Where it belongs, which its passages' ids are made of.
        chunker: How it is cut.
        embedder: The index's. The bundled one is opened in the child once more; others take too much memory for that,
            or belong to the application.
        limits: What it may cost.
        stop: Asked again and again; true ends it.

    Raises:
        RagFailure: It cannot be read, or costs too much.
        CalledOff: It was stopped.
    """
    content, facts = given(document)
    told: dict[str, Any] = {"cut": [chunker.size, chunker.overlap], "scope": scope, "most": limits.chunks}
    told["embedder"] = WordLlamaEmbedder.name if type(embedder) is WordLlamaEmbedder else ""
    result = WORKERS.run(_TASK, content, {**facts, **told}, limits, stop)
    chunks = [Chunk(*chunk) for chunk in result["chunks"]]
    packed = result["vectors"]
    vectors = None if packed is None else np.frombuffer(b64decode(packed), np.float32).reshape(len(chunks), -1)
    return unpacked(result["parsed"]), chunks, vectors


def embedded_texts(chunks: Sequence[Chunk]) -> list[str]:
    """Return what is embedded of passages."""
    return [under_heading(chunk.heading, chunk.text) for chunk in chunks]


def in_child(content: bytes, *, cut: list[int], scope: str, most: int, embedder: str, **facts: str) -> dict[str, Any]:
    """Do the work, and return it in a form that JSON can hold."""
    parsed = read(content, **facts)
    chunks = _chunker(*cut).cut(parsed, scope=scope, most=most)
    vectors = _embedder(embedder).embed(embedded_texts(chunks)) if embedder and chunks else None
    return {
        "parsed": facts_of(parsed),
        "chunks": [astuple(chunk) for chunk in chunks],
        "vectors": None if vectors is None else b64encode(vectors.tobytes()).decode(),
    }


@lru_cache(maxsize=4)
def _chunker(size: int, overlap: int) -> Chunker:
    return Chunker(default_counter(), size, overlap)


_embedder = lru_cache(maxsize=1)(open_embedder)
