"""Clients of models that are made by one generator (OpenAI's and Anthropic's): every call of theirs goes one way.

A request is only looked at, never changed. A stream stays the object that the client made; what it iterates over is
followed, so that the answer is read as the application reads it, and no sooner.
"""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, cast

from spanforge.integrations._client_calls import Call, Provider
from spanforge.integrations._hooks import Hook, Undo, replaced
from spanforge.integrations._options import is_paused
from spanforge.integrations._quiet import quiet
from spanforge.integrations._raw_answers import follow_raw
from spanforge.integrations._runs import is_wanted
from spanforge.integrations._stage import current_call

__all__ = ["hooks"]


def hooks(package: str, provider: Provider) -> tuple[Hook, ...]:
    """Return what takes hold of a client's package."""

    def install(module: ModuleType) -> Undo:
        sync = replaced(module.SyncAPIClient, "request", functools.partial(_request, provider))
        other = replaced(module.AsyncAPIClient, "request", functools.partial(_async_request, provider))

        def undo() -> None:
            sync()
            other()

        return undo

    return (Hook(f"{package}._base_client", install),)


def _begun(provider: Provider, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    found: list[Call] = []
    _look(found, provider, kwargs["options"] if "options" in kwargs else args[1] if len(args) > 1 else None)
    return found[0] if found else None


@quiet
def _look(found: list[Call], provider: Provider, options: Any) -> None:
    body = options.json_data
    if str(options.method).lower() != "post" or not isinstance(body, Mapping):
        return
    if not str(options.url).partition("?")[0].endswith(provider.paths):
        return
    if is_wanted() or (current_call.get() is not None and not is_paused()):
        found.append(Call(provider, cast("Mapping[str, Any]", body)))


def _request(provider: Provider, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def request(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = _begun(provider, args, kwargs)
        if call is None:
            return original(self, *args, **kwargs)
        with call:
            answer = original(self, *args, **kwargs)
        _follow(call, answer)
        return answer

    return request


def _async_request(provider: Provider, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def request(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = _begun(provider, args, kwargs)
        if call is None:
            return await original(self, *args, **kwargs)
        with call:
            answer = await original(self, *args, **kwargs)
        _follow(call, answer)
        return answer

    return request


def _follow(call: Call, answer: Any) -> None:
    """Read an answer: at once, or as the application reads it. One that cannot be looked at has come all the same."""
    if not _is_followed(call, answer):
        call.end()


@quiet
def _is_followed(call: Call, answer: Any) -> bool:
    iterator = getattr(answer, "_iterator", None)
    if isinstance(iterator, Iterator):
        answer._iterator = pieces = _Pieces(iterator, call)  # noqa: SLF001  the stream's type stays what it was
        answer.close = _closing(answer.close, pieces)
    elif isinstance(iterator, AsyncIterator):
        answer._iterator = pieces = _AsyncPieces(iterator, call)  # noqa: SLF001
        answer.close = _closing(answer.close, pieces)
    elif (raw := getattr(answer, "http_response", None)) is not None:
        follow_raw(call, answer, raw, _follow)
    else:
        call.whole(answer)
    return True


def _closing(close: Callable[..., Any], pieces: _Left) -> Callable[..., Any]:
    """Wrap a stream's `close`: nobody reads the rest. Both kinds of stream are left when it is called."""

    @functools.wraps(close)
    def closed(*args: Any, **kwargs: Any) -> Any:
        pieces.leave()
        return close(*args, **kwargs)

    return closed


class _Left:
    """Ends a call that nobody reads any further."""

    _is_over = False

    def __init__(self, pieces: Any, call: Call) -> None:
        self._pieces = pieces
        self._call = call

    def __enter__(self) -> None:
        """The next piece is asked for."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            self._end()
        elif error is not None:
            self._end(error)

    def leave(self) -> None:
        """Say that nobody reads any further."""
        self._end(GeneratorExit())

    def _end(self, error: BaseException | None = None) -> None:
        if not self._is_over:
            self._is_over = True
            if error is None:
                self._call.end()
            else:
                self._call.fail(error)

    def __del__(self) -> None:
        self.leave()


class _Pieces(_Left):
    """A stream's iterator, followed."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self:
            piece = next(self._pieces)
        self._call.piece(piece)
        return piece

    def close(self) -> None:
        """Close the iterator, as the stream's own helper may."""
        self._end(GeneratorExit())
        self._pieces.close()


class _AsyncPieces(_Left):
    """A stream's asynchronous iterator, followed."""

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        with self:
            piece = await anext(self._pieces)
        self._call.piece(piece)
        return piece

    async def aclose(self) -> None:
        """Close the iterator, as the stream's own helper may."""
        self._end(GeneratorExit())
        await self._pieces.aclose()
