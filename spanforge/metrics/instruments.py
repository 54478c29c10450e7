"""What an instrument is: a name, a unit, and what it reads from an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = ["Attributes", "Instrument", "Reading", "Values", "known", "measured"]

Attributes: TypeAlias = tuple[tuple[str, str], ...]
"""What a series is kept apart by: of few values, never a session or a digest."""

Values: TypeAlias = Mapping[str, Any]
"""An event's payload."""

Reading: TypeAlias = tuple[Attributes, float]

_MOST: Final = (1 << 53) - 1
"""No measurement is larger: sums of many still fit what receivers count in."""


@dataclass(frozen=True, slots=True, eq=False)
class Instrument:
    """One metric.

    Attributes:
        name: Its name.
        unit: UCUM unit.
        description: What it measures.
        event_types: The events it reads.
        read: What it reads from one: a measurement for each set of attributes. What was not measured is not there.
        bounds: Upper bounds of the buckets of a histogram, each included in its bucket; empty for a counter.
    """

    name: str
    unit: str
    description: str
    event_types: tuple[str, ...]
    read: Callable[[str, Values], Iterable[Reading]]
    bounds: tuple[float, ...] = ()


def known(*pairs: tuple[str, object]) -> Attributes:
    """Return the pairs that have a value."""
    return tuple((name, str(value)) for name, value in pairs if value)


def measured(value: float | None, *, per: int = 1) -> Iterable[float]:
    """Yield a measurement divided by `per`; nothing where there is none. A zero is one that nobody took."""
    if value:
        yield min(value, _MOST) / per if per != 1 else min(value, _MOST)
