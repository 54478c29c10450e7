"""What fails in an integration is counted, and the application never sees it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from spanforge._guard import guarded
from spanforge.exceptions import UnknownSessionError
from spanforge.sdk import sf_rag

__all__ = ["counted", "end_quietly", "quiet"]

F = TypeVar("F", bound=Callable[..., Any])


def _counted(error: BaseException, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> None:
    sf_rag.cell.get().count(
        f"integration_failed:{type(error).__name__ if type(error).__module__ == 'builtins' else 'Exception'}"
    )


def quiet(hook: F) -> F:
    """Decorate what a framework calls: the application never sees it fail; a failure is counted."""
    return guarded(hook, _counted, meant=())  # type: ignore[return-value]


def counted(call: F) -> F:
    """Decorate what the application calls: what fails is counted, and only strict mode's own errors are raised."""
    return guarded(call, _counted)  # type: ignore[return-value]


def end_quietly(session_id: str) -> None:
    """End a session whatever became of it: one that was never opened, or is forgotten, has no summary to give."""
    with suppress(UnknownSessionError):
        sf_rag.end_session(session_id)
