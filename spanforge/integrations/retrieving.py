"""One traced retrieval around code that is not ours: what every integration has in common."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, cast

from spanforge.integrations._quiet import end_quietly, quiet
from spanforge.integrations._runs import Run, current_run, session_of
from spanforge.integrations._stage import OpenRetrieval, current_retrieval
from spanforge.sdk import sf_rag
from spanforge.sdk.scopes import RetrievalScope, outcome_of

__all__ = ["Retrieval"]


class Retrieval(OpenRetrieval):
    """A retrieval in the current session, in the run of a framework, or in a session of its own, which ends with it.

    Inside another one it stands back: two instrumentors on one call make one event.

    Args:
        query: The query, of any type `trace_query` takes; None where it is no text.
        details: Keywords of `trace_query`.
    """

    def __init__(self, query: Any, **details: Any) -> None:
        super().__init__()
        outer = current_retrieval.get()
        self.within = outer if outer is not None and not outer.is_done else None
        self._stack = ExitStack()
        if self.within is not None:
            return
        run, scope = current_run(), sf_rag.current_scope()
        self._session_id = self._asked(run, scope, query, details)
        if isinstance(scope, RetrievalScope):
            scope.fill(query_hash=query if isinstance(query, str) else "")
            self._stage, self._found = scope, scope.found
            self._stack.push(self._left)
        else:
            self._stage = sf_rag.retrieval(self._session_id, query_hash=query if isinstance(query, str) else "")
            self._found = self._stage.record
            # In a context of its own: between two hits of a stream the consumer's is free of it.
            copy_context().run(self._stack.enter_context, self._stage)
        if run is not None:
            tell = run.shown.so_far if self._stage is scope else run.shown.add
            self._stack.callback(lambda: tell(self._stage.chunk_ids))

    def _asked(self, run: Run | None, scope: Any, query: Any, details: dict[str, Any]) -> str:
        """Record the query; return the session that it belongs to."""
        if (current := session_of(scope)) is not None:
            if query is not None:
                sf_rag.trace_query(query, session_id=current, once=True, **details)
            return current
        if run is not None:
            run.asked(query, **details)
            return run.session_id
        own = sf_rag.trace_query("" if query is None else query, **details)
        end = partial(end_quietly, own)
        if scope is None:
            self._stack.callback(end)
        else:
            scope.adopt(own, end)
        return own

    def _left(self, kind: type[BaseException] | None, *_: object) -> None:
        if failure := outcome_of(kind):
            self._found((), **failure)

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
        if self.within is not None:
            yield
            return
        token = current_retrieval.set(self)
        try:
            with sf_rag.attach(self._session_id):
                yield
        finally:
            # A coroutine that is collected, not awaited to its end, is closed in whatever context that happens in;
            # there is nothing to undo there.
            with suppress(ValueError):
                current_retrieval.reset(token)

    def _record(self, result: Any) -> None:
        if self.within is None:
            scored = with_scores(result, self.scores)
            self._found(result if scored is None else scored)
        else:
            self.within.scores.update(_scores_in(result) or {})

    def _add(self, hit: Any) -> None:
        if self.within is None:
            self._stage.add(hit)


@quiet
def with_scores(hits: Any, scores: Mapping[int, tuple[Any, Any]]) -> Any:
    """Return hits, each that a store has told the score of beside it."""
    if not scores or not isinstance(hits, list):
        return hits
    found = cast("list[Any]", hits)
    return [(one, scores[id(one)][1]) if id(one) in scores else one for one in found]


@quiet
def _scores_in(result: Any) -> dict[int, tuple[Any, Any]]:
    """Return what a search with scores told of its documents."""
    pairs = cast("list[Any]", result if isinstance(result, list) else [])
    scored = (cast("tuple[Any, ...]", pair) for pair in pairs if isinstance(pair, tuple))
    return {id(pair[0]): (pair[0], pair[1]) for pair in scored if len(pair) == len(("document", "score"))}


@contextmanager
def _closed(iterator: Iterator[Any]) -> Generator[None]:
    """Close a generator that is left early."""
    try:
        yield
    finally:
        if isinstance(iterator, Generator):
            iterator.close()
