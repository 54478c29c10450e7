"""LangChain: every retriever derived from `BaseRetriever`, by its `invoke` and `ainvoke`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spanforge.integrations._patching import RetrieverPatch

__all__ = ["is_patched", "patch", "unpatch"]


def _base_retriever() -> type[Any]:
    return import_module("langchain_core.retrievers").BaseRetriever


_patch = RetrieverPatch(_base_retriever, "invoke", "ainvoke", query="input")
patch, unpatch, is_patched = _patch.patch, _patch.unpatch, _patch.is_patched
