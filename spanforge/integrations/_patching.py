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
    """

    def __init__(self, find_class: Callable[[], type[Any]], method: str, async_method: str) -> None:
        self._find_class = find_class
        self._methods = (method, async_method)
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
            setattr(retriever, method, _traced(self._originals[method]))
            setattr(retriever, async_method, _traced_async(self._originals[async_method]))
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


def _begin(retriever: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Retrieval:
    query = args[0] if args else next(iter(kwargs.values()), "")
    return Retrieval(query, retriever_name=type(retriever).__name__)


def _traced(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: object, *args: Any, **kwargs: Any) -> Any:
        return _begin(self, args, kwargs).call(original, (self, *args), kwargs)

    return call


def _traced_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def call(self: object, *args: Any, **kwargs: Any) -> Any:
        return await _begin(self, args, kwargs).result_of(original(self, *args, **kwargs))

    return call
