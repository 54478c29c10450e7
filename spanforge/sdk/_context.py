"""What travels with the context, across tasks and copied contexts: the session, and who events are made for.

Blocks need not end in the order they began, nor in the context they began in: streams and abandoned generators do
neither. So a block marks its own frame as left, and whoever looks passes over frames that were left.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Generic, TypeVar

from spanforge.namespaces.event import Binding

__all__ = ["Current", "Frame", "bound", "current_session"]

T = TypeVar("T")


class Frame(Generic[T]):
    """One block's value, and the block it stands in."""

    __slots__ = ("left", "outer", "value")

    def __init__(self, value: T, outer: Frame[T] | None) -> None:
        self.value = value
        self.outer = outer
        self.left = False


class Current(Generic[T]):
    """The value of the innermost block that has not been left.

    Args:
        name: Of the context variable.
    """

    def __init__(self, name: str) -> None:
        self._variable: ContextVar[Frame[T] | None] = ContextVar(name, default=None)

    def get(self) -> T | None:
        """Return the value, None outside of any block."""
        frame = self._variable.get()
        if frame is None:
            return None
        frame = _entered(frame)
        return None if frame is None else frame.value

    def enter(self, value: T) -> Frame[T]:
        """Enter a block in this context."""
        frame = Frame(value, _entered(self._variable.get()))
        self._variable.set(frame)
        return frame

    def leave(self, frame: Frame[T]) -> None:
        """Leave a block, in whichever context this is."""
        frame.left = True
        if self._variable.get() is frame:
            self._variable.set(_entered(frame))


def _entered(frame: Frame[T] | None) -> Frame[T] | None:
    while frame is not None and frame.left:
        frame = frame.outer
    return frame


current_session: Current[str | None] = Current("spanforge_session")
bound: Current[Binding] = Current("spanforge_binding")
