"""What every block has in common: `with` and `async with`, left once, and quiet about what fails in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self

from spanforge._guard import guarded
from spanforge.sdk._cell import RuntimeCell

__all__ = ["Block", "cell_of", "is_failure", "no", "quiet"]

P = ParamSpec("P")


def is_failure(kind: type[BaseException] | None) -> bool:
    """Tell whether leaving a block with this is an error: a consumer that stops reading a stream makes none."""
    return kind is not None and not issubclass(kind, GeneratorExit)


def no(*_args: Any, **_kwargs: Any) -> None:
    """What happens where a step fails: the application's block goes on."""


def cell_of(args: tuple[Any, ...]) -> RuntimeCell:
    """Return the cell of the scope whose method is called."""
    return args[0]._cell  # noqa: SLF001  a scope's own


def quiet(step: Callable[P, None]) -> Callable[P, None]:
    """Decorate a step of a scope: what it calls counts its own failures, so of others the block goes on."""
    return guarded(step, no)


class Block(ABC):
    """Enter and leave, synchronously or not."""

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(kind)

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(kind)

    # What these raise would reach the application: each is quiet about what fails.
    @abstractmethod
    def _enter(self) -> None: ...

    @abstractmethod
    def _leave(self, kind: type[BaseException] | None) -> None: ...
