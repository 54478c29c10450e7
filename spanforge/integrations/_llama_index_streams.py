"""Answers of LlamaIndex that are yet to be read, and the runs that they belong to."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Generator
from contextvars import ContextVar
from typing import Any

from spanforge.integrations._quiet import quiet
from spanforge.integrations._runs import Run

__all__ = ["follow", "resumed"]

resumed: ContextVar[Run | None] = ContextVar("spanforge_llama_index", default=None)
"""The run whose answer is being read."""


@quiet
def follow(result: Any, run: Run) -> bool:
    """Have an answer that is yet to be read know its run; False where the answer is complete.

    On some versions the model is only called when the answer is read, in whatever context that is.
    """
    if "Streaming" not in type(result).__name__:
        return False
    pieces = vars(result).get("response_gen")
    if isinstance(pieces, AsyncGenerator):
        result.response_gen = followed = _resumed_async(pieces, run)
    elif isinstance(pieces, Generator):
        result.response_gen = followed = _resumed_sync(pieces, run)
    else:
        return True
    # A generator that was never begun is collected without a word.
    weakref.finalize(followed, quiet(run.end)).atexit = False
    return True


def _resumed_sync(pieces: Generator[Any], run: Run) -> Generator[Any]:
    try:
        while True:
            token = resumed.set(run)
            try:
                piece = next(pieces)
            except StopIteration:
                break
            finally:
                resumed.reset(token)
            yield piece
    finally:
        pieces.close()
        quiet(run.end)()


async def _resumed_async(pieces: AsyncGenerator[Any], run: Run) -> AsyncGenerator[Any]:
    try:
        while True:
            token = resumed.set(run)
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                break
            finally:
                resumed.reset(token)
            yield piece
    finally:
        await pieces.aclose()
        quiet(run.end)()
