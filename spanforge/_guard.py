"""The one broad `except` of the SDK: nothing of ours, and nothing of a sink's, reaches the application."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from spanforge.exceptions import StrictModeError, UnknownSessionError

__all__ = ["attempt", "guarded", "out_of_stack"]

out_of_stack: Final = [0]
"""How many calls came too near to the recursion limit for anything but this to be done about them."""

P = ParamSpec("P")
T = TypeVar("T")

MEANT_FOR_THE_CALLER: Final[tuple[type[Exception], ...]] = (StrictModeError, UnknownSessionError)


def guarded(
    function: Callable[P, T],
    recover: Callable[[BaseException, tuple[Any, ...], dict[str, Any]], T],
    meant: tuple[type[BaseException], ...] = MEANT_FOR_THE_CALLER,
    caught: type[BaseException] = Exception,
    last: Any = None,
) -> Callable[P, T]:
    """Return `function` with its errors handed to `recover`.

    Args:
        function: What may fail.
        recover: Gets the error and the call's arguments; what it returns is returned instead. It runs outside any
            handler, so that nothing it raises carries the failed call's frames along.
        meant: Errors raised on purpose, which pass.
        caught: The kind of error that is handled; any other passes.
        last: Returned where the stack has no room left for `recover` either.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except meant:
            raise
        except RecursionError as error:
            failure = error
        except BaseException as error:  # the only one; see the module's docstring
            if not isinstance(error, caught):
                raise
            failure = error
        try:
            return recover(failure, args, kwargs)
        except RecursionError:
            # At the limit every call fails, those of Python's own functions too.
            out_of_stack[0] += 1
            return last

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
_attempt = guarded(_run, _give, meant=(), caught=BaseException, last=RecursionError())


def attempt(action: Callable[[], object]) -> BaseException | None:
    """Run `action` and return what it raised, None where it did not. Only the user's KeyboardInterrupt passes."""
    return _attempt(action)
