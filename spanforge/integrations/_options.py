"""What the application wants traced: what it told `setup()`, and where it wants nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal

from spanforge.integrations._quiet import quiet

__all__ = ["OPTIONS", "is_paused", "paused"]


class Options:
    """What `setup()` was told.

    Attributes:
        sessions: Whether a client's call outside of any run is a session of its own (`auto`).
        conversation: Tells the conversation that a run belongs to, where its framework does not.
    """

    def __init__(self) -> None:
        self.sessions: Literal["auto", "explicit"] = "auto"
        self.conversation: Callable[[], object] | str | None = None

    def current_conversation(self) -> Any:
        """Return the conversation that a run which begins now belongs to."""
        return quiet(self.conversation)() if callable(self.conversation) else self.conversation


OPTIONS: Final = Options()
_pauses: ContextVar[int] = ContextVar("spanforge_paused", default=0)


@contextmanager
def paused() -> Any:
    """Trace nothing of the frameworks in a block."""
    token = _pauses.set(_pauses.get() + 1)
    try:
        yield
    finally:
        _pauses.reset(token)


def is_paused() -> bool:
    """Tell whether this context wants nothing traced."""
    return _pauses.get() > 0
