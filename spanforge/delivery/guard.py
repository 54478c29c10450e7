"""The one broad `except` of the SDK: nothing of ours, and nothing of a sink's, reaches the application."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from spanforge.exceptions import StrictModeError, UnknownSessionError

__all__ = ["attempt", "guarded"]

P = ParamSpec("P")
T = TypeVar("T")

_MEANT = (StrictModeError, UnknownSessionError)
"""Raised on purpose, for the caller."""


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Exception | None]:
    try:
        return function(*args, **kwargs), None
    except Exception as error:  # noqa: BLE001  the only one; see the module's docstring
        return None, error


def attempt(action: Callable[[], object]) -> Exception | None:
    """Run `action` and return what it raised, None where it did not."""
    return _run(action, (), {})[1]


def guarded(
    function: Callable[P, T], recover: Callable[[Exception, tuple[Any, ...], dict[str, Any]], T]
) -> Callable[P, T]:
    """Return `function` with every error, but those meant for the caller, handed to `recover`.

    Args:
        function: What may fail.
        recover: Gets the error and the call's arguments; what it returns is returned instead. It runs outside any
            handler, so that nothing it raises carries the failed call's frames along.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        result, error = _run(function, args, kwargs)
        if error is None:
            return result
        if isinstance(error, _MEANT):
            raise error
        return recover(error, args, kwargs)

    return call
