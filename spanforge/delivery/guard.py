"""The one broad `except` of the SDK: nothing of ours, and nothing of a sink's, reaches the application."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from spanforge.exceptions import StrictModeError, UnknownSessionError

__all__ = ["attempt", "guarded", "warn"]

_log = logging.getLogger("spanforge")

P = ParamSpec("P")
T = TypeVar("T")

MEANT_FOR_THE_CALLER: Final[tuple[type[Exception], ...]] = (StrictModeError, UnknownSessionError)


def guarded(
    function: Callable[P, T],
    recover: Callable[[BaseException, tuple[Any, ...], dict[str, Any]], T],
    meant: tuple[type[BaseException], ...] = MEANT_FOR_THE_CALLER,
    caught: type[BaseException] = Exception,
) -> Callable[P, T]:
    """Return `function` with its errors handed to `recover`.

    Args:
        function: What may fail.
        recover: Gets the error and the call's arguments; what it returns is returned instead. It runs outside any
            handler, so that nothing it raises carries the failed call's frames along.
        meant: Errors raised on purpose, which pass.
        caught: The kind of error that is handled; any other passes.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except meant:
            raise
        except BaseException as error:  # the only one; see the module's docstring
            if not isinstance(error, caught):
                raise
            failure = error
        return recover(failure, args, kwargs)

    return call


def _run(action: Callable[[], object]) -> BaseException | None:
    action()
    return None


def _give(error: BaseException, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> BaseException:
    # An interrupt is the user's, and Python raises it in the main thread alone: elsewhere it is a sink's own doing.
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error
    return error


# A sink that raises SystemExit or CancelledError has failed, and nothing more.
_attempt = guarded(_run, _give, meant=(), caught=BaseException)


def attempt(action: Callable[[], object]) -> BaseException | None:
    """Run `action` and return what it raised, None where it did not. Only the user's KeyboardInterrupt passes."""
    return _attempt(action)


def warn(message: str, *args: object) -> None:
    """Log a warning; an application's handler that fails costs the line and nothing else."""
    attempt(lambda: _log.warning(message, *args))
