"""The promise of every call an application makes while it traces: it raises nothing, whatever it is given."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any, NamedTuple, ParamSpec, TypeVar

from spanforge._guard import guarded
from spanforge.sdk._cell import RuntimeCell

__all__ = ["never_raises"]

P = ParamSpec("P")
T = TypeVar("T")


def _own_cell(args: tuple[Any, ...]) -> RuntimeCell:
    return args[0].cell


def never_raises(
    fallback: Callable[..., Any], last: Any = None, cell: Callable[[tuple[Any, ...]], RuntimeCell] = _own_cell
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a public call: what it has no place for is left out, and an error is counted, logged and gone.

    In strict mode the error is raised instead.

    Args:
        fallback: Gets the arguments of a call that failed; what it returns is returned.
        last: Returned where the stack has no room left for the fallback.
        cell: Finds the cell of the runtime that counts, given the call's arguments by place.
    """

    def decorate(call: Callable[P, T]) -> Callable[P, T]:
        places = _Places.of(signature(call))
        name = call.__name__

        def recover(error: BaseException, args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
            runtimes = cell(args)
            runtime = runtimes.current()
            if runtime is not None and runtime.settings.strict:
                raise error
            kept, known = places.fitting(args, kwargs)
            if len(kept) + len(known) < len(args) + len(kwargs):
                # The rest of the call is good: one argument that means nothing here must not cost the event.
                runtimes.get().count(f"{name}_unknown_argument")
                return safe(*kept, **known)
            if runtime is not None:
                runtime.count(f"{name}_failed:{_known_name(error)}")
            return fallback(*args, **kwargs)

        safe = guarded(call, recover, last=last)
        return safe

    return decorate


class _Places(NamedTuple):
    """What a call has a place for.

    Attributes:
        in_order: Parameters that can be given by place.
        by_name: Those that can be given by keyword.
        more: It takes any further arguments.
        any_name: It takes any further keywords.
    """

    in_order: tuple[str, ...]
    by_name: frozenset[str]
    more: bool
    any_name: bool

    @classmethod
    def of(cls, shape: Signature) -> _Places:
        kinds = {name: parameter.kind for name, parameter in shape.parameters.items()}
        in_order = {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
        by_name = {Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
        return cls(
            tuple(name for name, kind in kinds.items() if kind in in_order),
            frozenset(name for name, kind in kinds.items() if kind in by_name),
            Parameter.VAR_POSITIONAL in kinds.values(),
            Parameter.VAR_KEYWORD in kinds.values(),
        )

    def fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return those of a call's arguments that have a place, each in one."""
        kept = args if self.more else args[: len(self.in_order)]
        taken = self.by_name.intersection(self.in_order[: len(kept)])
        known = {
            name: value
            for name, value in kwargs.items()
            if name not in taken and (self.any_name or name in self.by_name)
        }
        return kept, known


def _known_name(error: BaseException) -> str:
    """Name an error by its class, if that is one of Python's own: any other may be made of text."""
    return next((kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"), "Exception")
