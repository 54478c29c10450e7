"""`@trace_rag`: a retriever of the application's own, traced by a decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from typing import Any, Final, ParamSpec, TypeVar, overload

from spanforge.integrations.retrieving import Retrieval

__all__ = ["trace_rag"]

P = ParamSpec("P")
R = TypeVar("R")

_QUERY_NAMES: Final = ("query", "question", "q", "text", "query_str", "input", "prompt")
_RECEIVERS: Final = ("self", "cls")


@overload
def trace_rag(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def trace_rag(*, retriever_name: str = ..., **details: Any) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def trace_rag(function: Callable[..., Any] | None = None, *, retriever_name: str = "", **details: Any) -> Any:
    """Trace a retriever: each call emits a query and a retrieval, with the ids and scores of what it returns.

    Takes functions, methods, coroutine functions, and generators of both kinds, whose hits are read as they pass.
    Inside `sf_rag.session(…)` the call becomes part of that session; otherwise it is a session of its own. An error
    is recorded as its class and raised as it was.

    The query is found by name. Of `query`, `question`, `q`, `text`, `query_str`, `input` and `prompt`, the first that
    the function has as a parameter is the query, wherever it stands and however it is passed; a function that has none
    of them is given its query as its first argument, `self` and `cls` not counted. A call that leaves the query to a
    default, or passes it within `**kwargs`, is traced with an empty one. Where none of this fits, open the scope
    `sf_rag.session(query)` around the call.

    Args:
        function: The retriever.
        retriever_name: Name in the events; the function's qualified name without it.
        details: Keywords of `trace_query` for every call, such as `namespace` or `pipeline_name`.

    Returns:
        The decorated function.
    """
    if function is None:
        return functools.partial(trace_rag, retriever_name=retriever_name, **details)
    name = retriever_name or getattr(function, "__qualname__", type(function).__qualname__)
    find_query = _query_finder(function)

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Retrieval:
        return Retrieval(find_query(args, kwargs), retriever_name=name, **details)

    return functools.wraps(function)(_wrapper(function, begin))


def _wrapper(function: Callable[..., Any], begin: Callable[..., Retrieval]) -> Callable[..., Any]:
    """Return the wrapper for the kind of function at hand: what inspect says of it stays true of the wrapper."""
    if inspect.isasyncgenfunction(function):

        async def async_stream(*args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
            hits = begin(args, kwargs).async_stream(function(*args, **kwargs))
            async with aclosing(hits):
                async for hit in hits:
                    yield hit

        return async_stream
    if inspect.isgeneratorfunction(function):

        def stream(*args: Any, **kwargs: Any) -> Generator[Any]:
            yield from begin(args, kwargs).stream(function(*args, **kwargs))

        return stream
    if inspect.iscoroutinefunction(function):

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return await begin(args, kwargs).result_of(function(*args, **kwargs))

        return call_async

    def call(*args: Any, **kwargs: Any) -> Any:
        return begin(args, kwargs).call(function, args, kwargs)

    return call


def _query_finder(function: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Return what finds the query among a call's arguments."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (ValueError, TypeError):
        parameters = []
    own = [name for name in parameters if name not in _RECEIVERS]
    wanted = next((name for name in _QUERY_NAMES if name in own), own[0] if own else "query")
    position = parameters.index(wanted) if wanted in parameters else 0

    def find(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if wanted in kwargs:
            return kwargs[wanted]
        return args[position] if position < len(args) else ""

    return find
