"""What a call finds around it: the OpenTelemetry span the application is in, and how much stack is left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, reduce
from typing import Final

from spanforge._guard import guarded
from spanforge.namespaces.event import Parent

__all__ = ["active_span", "need_stack"]


def _none() -> None: ...


def _one_deeper(call: Callable[[], None], _level: int) -> Callable[[], None]:
    def deeper() -> None:
        call()

    return deeper


need_stack: Final[Callable[[], None]] = reduce(_one_deeper, range(10), _none)
"""Raises RecursionError now, while nothing has changed, where the stack has no room for a change to the end.

Each frame knows the next, which costs half of what counting them would, in every traced call.
"""


def _no_span(*_: object) -> Parent | None:
    return None


@partial(guarded, recover=_no_span)
def active_span() -> Parent | None:
    """Return the OpenTelemetry span the application is in, if it uses OpenTelemetry at all."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span = trace.get_current_span()
    if span is trace.INVALID_SPAN or not (context := span.get_span_context()).is_valid:
        return None
    return Parent(f"{context.trace_id:032x}", f"{context.span_id:016x}", bool(context.trace_flags.sampled))
