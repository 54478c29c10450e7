"""What travels with the context, across tasks and copied contexts: the session, and who events are made for.

Blocks need not end in the order they began, nor in the context they began in: streams and abandoned generators do
neither. So a block marks its own frame as left, and whoever looks passes over frames that were left.

What a frame covers is known to its block alone, and goes with it: who let a block go will never leave it, so of blocks
that are entered one after the other, and never left, only the last stays.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

from spanforge.namespaces.event import Binding

__all__ = ["FINDERS", "Block", "Current", "bound", "current_session", "current_stage", "found_session"]

T = TypeVar("T")


class Frame(Generic[T]):
    """What a context holds of a block.

    Attributes:
        value: The block's value.
        left: Whether the block was left.
        outer: What shows instead, once it was left.
    """

    __slots__ = ("left", "outer", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.left = False
        self.outer: Frame[T] | None = None


class Block(Generic[T]):
    """A value that holds until it is left; whoever entered it keeps it to that end."""

    __slots__ = ("_frame", "_outer", "_variable")

    def __init__(self, variable: ContextVar[Frame[T] | None], value: T) -> None:
        self._variable = variable
        self._outer = _entered(variable.get())
        self._frame = Frame(value)
        variable.set(self._frame)

    @property
    def value(self) -> T:
        """What it was entered with."""
        return self._frame.value

    def leave(self) -> None:
        """End it, in whichever context this is."""
        frame = self._frame
        frame.outer = _entered(self._outer)
        frame.left = True
        if self._variable.get() is frame:
            self._variable.set(frame.outer)


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

    def give_up(self) -> None:
        """End the innermost block, that nobody can leave any more; what it covered is not known."""
        frame = _entered(self._variable.get())
        if frame is not None:
            frame.left = True

    def enter(self, value: T) -> Block[T]:
        """Enter a block in this context; what is returned is what leaves it."""
        return Block(self._variable, value)


def _entered(frame: Frame[T] | None) -> Frame[T] | None:
    while frame is not None and frame.left:
        frame = frame.outer
    return frame


current_session: Current[str | None] = Current("spanforge_session")
current_stage: Current[Callable[[], Any]] = Current("spanforge_stage")
"""A weak reference to the scope of a stage, whose class is above this module."""
bound: Current[Binding] = Current("spanforge_binding")

FINDERS: Final[list[Callable[[], str | None]]] = []
"""What knows a session where no block says one: a framework, of the run that the code at work now is called from."""


def found_session() -> str | None:
    """Return the session of the innermost block, else the one that a framework's run has or opens for this."""
    own = current_session.get()
    if own is None and FINDERS:
        return next((session_id for find in FINDERS if (session_id := find())), None)
    return own
