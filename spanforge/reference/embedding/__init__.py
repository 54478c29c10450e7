"""Turning text into vectors: a protocol, four engines, and one place that opens them by name."""

from __future__ import annotations

from spanforge.reference.embedding.base import Embedder, open_embedder

__all__ = ["Embedder", "open_embedder"]
