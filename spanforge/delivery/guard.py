"""The one broad `except` of the SDK: nothing of ours, and nothing of a sink's, reaches the application."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from spanforge.exceptions import StrictModeError, UnknownSessionError

__all__ = ["attempt", "guarded"]

P = ParamSpec("P")
T = TypeVar("T")

MEANT_FOR_THE_CALLER: Final[tuple[type[Exception], ...]] = (StrictModeError, UnknownSessionError)


def guarded(
    function: Callable[P, T],
    recover: Callable[[Exception, tuple[Any, ...], dict[str, Any]], T],
    meant: tuple[type[Exception], ...] = MEANT_FOR_THE_CALLER,
) -> Callable[P, T]:
    """Return `function` with its errors handed to `recover`.

    Args:
        function: What may fail.
        recover: Gets the error and the call's arguments; what it returns is returned instead. It runs outside any
            handler, so that nothing it raises carries the failed call's frames along.
        meant: Errors raised on purpose, which pass.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except meant:
            raise
        except Exception as error:  # noqa: BLE001  the only one; see the module's docstring
            failure = error
        return recover(failure, args, kwargs)

    return call


def _run(action: Callable[[], object]) -> Exception | None:
    action()
    return None


def _give(error: Exception, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Exception:
    return error


_attempt = guarded(_run, _give, meant=())


def attempt(action: Callable[[], object]) -> Exception | None:
    """Run `action` and return what it raised, None where it did not."""
    return _attempt(action)
