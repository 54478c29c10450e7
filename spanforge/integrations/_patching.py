"""Replacing one method of a class, and putting it back."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from spanforge.integrations.retrieving import Retrieval

__all__ = ["RetrieverPatch"]


class RetrieverPatch:
    """Traces a framework's retriever class.

    Args:
        find_class: Imports the class; raises ImportError where the framework is not installed.
        method: Its synchronous entry; the query is the first argument.
        async_method: Its asynchronous entry.
        query: What both call the query.
    """

    def __init__(self, find_class: Callable[[], type[Any]], method: str, async_method: str, *, query: str) -> None:
        self._find_class = find_class
        self._methods = (method, async_method)
        self._query = query
        self._lock = threading.Lock()
        self._originals: dict[str, Any] = {}

    def patch(self) -> bool:
        """Patch the class; False where the framework is not installed, or is patched already."""
        with self._lock:
            if self._originals:
                return False
            try:
                retriever = self._find_class()
            except ImportError:
                return False
            method, async_method = self._methods
            self._originals = {name: getattr(retriever, name) for name in self._methods}
            setattr(retriever, method, _traced(self._originals[method], self._query))
            setattr(retriever, async_method, _traced_async(self._originals[async_method], self._query))
            return True

    def unpatch(self) -> bool:
        """Put the class back as it was; False where it was not patched."""
        with self._lock:
            if not self._originals:
                return False
            retriever = self._find_class()
            for name, original in self._originals.items():
                setattr(retriever, name, original)
            self._originals = {}
            return True

    def is_patched(self) -> bool:
        """Tell whether the class is patched."""
        return bool(self._originals)


def _begin(retriever: object, query: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Retrieval:
    return Retrieval(args[0] if args else kwargs.get(query, ""), retriever_name=type(retriever).__name__)


def _traced(original: Callable[..., Any], query: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: object, *args: Any, **kwargs: Any) -> Any:
        return _begin(self, query, args, kwargs).call(original, (self, *args), kwargs)

    return call


def _traced_async(original: Callable[..., Any], query: str) -> Callable[..., Any]:
    @functools.wraps(original)
    async def call(self: object, *args: Any, **kwargs: Any) -> Any:
        return await _begin(self, query, args, kwargs).result_of(original(self, *args, **kwargs))

    return call
