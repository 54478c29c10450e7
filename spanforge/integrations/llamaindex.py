"""LlamaIndex: every retriever derived from `BaseRetriever`, by its `retrieve` and `aretrieve`."""

from __future__ import annotations

from typing import Any

from spanforge.integrations._patching import RetrieverPatch

__all__ = ["is_patched", "patch", "unpatch"]


def _base_retriever() -> type[Any]:
    from llama_index.core.base.base_retriever import BaseRetriever  # noqa: PLC0415  only where it is installed

    return BaseRetriever


_patch = RetrieverPatch(_base_retriever, "retrieve", "aretrieve")
patch, unpatch, is_patched = _patch.patch, _patch.unpatch, _patch.is_patched
