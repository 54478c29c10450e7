"""One declarative table for each standard: what is sent, how binding it is, and where the value comes from.

The tables are the mapping, not a description of it: the exporters read them, and so does the reference page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeAlias, TypeVar

from spanforge._text import well_formed

__all__ = [
    "UNKNOWN",
    "AttributeValue",
    "Attributes",
    "Level",
    "Row",
    "Section",
    "Standard",
    "collect",
    "nested",
]

AttributeValue: TypeAlias = str | bool | int | float | tuple[str, ...]
"""What an attribute of a span may be; everything here has a form in OTLP."""

Attributes: TypeAlias = dict[str, AttributeValue]

N = TypeVar("N")

UNKNOWN: Final = "unknown"
"""Stands where a standard requires a value that nobody gave."""

_INT64: Final = 1 << 63


class Level(StrEnum):
    """How binding a standard calls an attribute."""

    REQUIRED = "Required"
    CONDITIONAL = "Conditionally required"
    RECOMMENDED = "Recommended"
    OPTIONAL = "Optional"
    OPT_IN = "Opt-in"
    OWN = "Ours"


@dataclass(frozen=True, slots=True)
class Row(Generic[N]):
    """One attribute of a standard.

    Attributes:
        key: Its name; with `{n}` in it, the value is a list and each item gets its index.
        level: How binding the standard calls it.
        read: Takes the value from what the row is about; None where there is none.
        origin: Where the value comes from, for the reference page.
        compliance: The frameworks the standard names for it.
    """

    key: str
    level: Level
    read: Callable[[N], object]
    origin: str
    compliance: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """The rows that describe one thing: a kind of span, an event on it, a record.

    Attributes:
        title: What they describe.
        rows: The rows, in the standard's order.
    """

    title: str
    rows: tuple[Row[Any], ...]


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard as spanforge writes it.

    Attributes:
        name: Its name.
        version: The version that is written.
        note: What a reader of the page must know.
        sections: Its tables.
    """

    name: str
    version: str
    note: str
    sections: tuple[Section, ...]


def collect(rows: Iterable[Row[N]], subject: N) -> Attributes:
    """Read every row from `subject`; a required text that nobody gave is `unknown`, any other is left out."""
    found: Attributes = {}
    for row in rows:
        value = row.read(subject)
        if value is None or value == "":
            if row.level is Level.REQUIRED:
                found[row.key] = UNKNOWN
        elif "{n}" in row.key:
            _spread(found, row.key, value)
        else:
            _keep(found, row.key, value)
    return found


def _spread(found: Attributes, key: str, values: object) -> None:
    before, _, after = key.partition("{n}")
    for index, value in enumerate(values if isinstance(values, Sequence) else ()):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  any list
        _keep(found, f"{before}{index}{after}", value)


def _keep(found: Attributes, key: str, value: object) -> None:
    """Keep a value that OTLP can carry: well-formed text, 64-bit integers, finite numbers."""
    if isinstance(value, str):
        if value:
            found[key] = well_formed(value)
    elif isinstance(value, bool):
        found[key] = value
    elif isinstance(value, int):
        if -_INT64 <= value < _INT64:
            found[key] = value
    elif isinstance(value, float):
        if math.isfinite(value):
            found[key] = value
    elif isinstance(value, tuple):
        found[key] = tuple(well_formed(item) for item in value if isinstance(item, str))  # pyright: ignore[reportUnknownVariableType]  checked


def nested(flat: Mapping[str, object]) -> dict[str, Any]:
    """Turn dotted paths into nested objects: `{"a.b": 1}` becomes `{"a": {"b": 1}}`."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, leaf = path.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[leaf] = value
    return tree
