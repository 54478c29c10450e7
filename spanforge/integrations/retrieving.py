"""One traced retrieval around code that is not ours: what every integration has in common."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, cast

from spanforge.sdk import sf_rag

__all__ = ["Retrieval"]

_inside: ContextVar[bool] = ContextVar("spanforge_inside_retrieval", default=False)


class Retrieval:
    """A retrieval in the current session, or in one of its own, which ends with it.

    Inside another one it stands back: two instrumentors on one call make one event.

    Args:
        query: The query, of any type `trace_query` takes.
        details: Keywords of `trace_query`.
    """

    def __init__(self, query: Any, **details: Any) -> None:
        self._stands_back = _inside.get()
        self._stack = ExitStack()
        if self._stands_back:
            return
        current = sf_rag.current_session_id()
        self._session_id = sf_rag.trace_query(query, session_id=current, **details)
        if current is None:
            # A trace call that failed has given an id that was never opened.
            self._stack.enter_context(suppress(KeyError))
            self._stack.callback(sf_rag.end_session, self._session_id)
        self._stage = self._stack.enter_context(sf_rag.retrieval(self._session_id))

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function and record what it returns; an awaitable or an iterator is recorded as it is used."""
        with ExitStack() as until_known:
            until_known.push(self._stack)
            with self._running():
                result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                until_known.pop_all()
                return self.result_of(result)
            if isinstance(result, Iterator):
                until_known.pop_all()
                return self.stream(cast("Iterator[Any]", result))
            self._record(result)
            return result

    async def result_of(self, awaitable: Awaitable[Any]) -> Any:
        """Await a result and record it."""
        with self._stack:
            with self._running():
                result = await awaitable
            self._record(result)
            return result

    def stream(self, hits: Iterable[Any]) -> Generator[Any]:
        """Pass hits on and record each as it passes."""
        iterator = iter(hits)
        with self._stack, _closed(iterator):
            while True:
                # Step by step, so that between two hits the consumer's context is its own.
                with self._running():
                    try:
                        hit = next(iterator)
                    except StopIteration:
                        return
                self._add(hit)
                yield hit

    async def async_stream(self, hits: AsyncIterable[Any]) -> AsyncGenerator[Any]:
        """Pass hits on and record each as it passes."""
        iterator = aiter(hits)
        try:
            with self._stack:
                while True:
                    with self._running():
                        try:
                            hit = await anext(iterator)
                        except StopAsyncIteration:
                            return
                    self._add(hit)
                    yield hit
        finally:
            if isinstance(iterator, AsyncGenerator):
                await iterator.aclose()

    @contextmanager
    def _running(self) -> Generator[None]:
        """While the wrapped code runs: it is in the session, and what it calls stands back."""
        if self._stands_back:
            yield
            return
        token = _inside.set(True)
        try:
            with sf_rag.attach(self._session_id):
                yield
        finally:
            # A coroutine that is collected, not awaited to its end, is closed in whatever context that happens in;
            # there is nothing to undo there.
            with suppress(ValueError):
                _inside.reset(token)

    def _record(self, result: Any) -> None:
        if not self._stands_back:
            self._stage.record(result)

    def _add(self, hit: Any) -> None:
        if not self._stands_back:
            self._stage.add(hit)


@contextmanager
def _closed(iterator: Iterator[Any]) -> Generator[None]:
    """Close a generator that is left early."""
    try:
        yield
    finally:
        if isinstance(iterator, Generator):
            iterator.close()
