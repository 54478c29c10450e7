"""LlamaIndex: every retriever derived from `BaseRetriever`, by its `retrieve` and `aretrieve`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spanforge.integrations._patching import RetrieverPatch

__all__ = ["is_patched", "patch", "unpatch"]


def _base_retriever() -> type[Any]:
    return import_module("llama_index.core.base.base_retriever").BaseRetriever


_patch = RetrieverPatch(_base_retriever, "retrieve", "aretrieve", query="str_or_query_bundle")
patch, unpatch, is_patched = _patch.patch, _patch.unpatch, _patch.is_patched
