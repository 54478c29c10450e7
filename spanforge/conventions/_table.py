"""One declarative table for each standard: what is sent, how binding it is, and where the value comes from.

The tables are the mapping, not a description of it: the exporters read them, and so does the reference page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    "encode",
    "nested",
]

AttributeValue: TypeAlias = str | bool | int | float | tuple[str, ...]
"""What an attribute of a span may be; everything here has a form in OTLP."""

Attributes: TypeAlias = dict[str, AttributeValue]

N = TypeVar("N")

UNKNOWN: Final = "unknown"
"""Stands where a standard requires a value that nobody gave."""

_INT64: Final = 1 << 63

encode: Final = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
"""Writes an attribute that is JSON, the same way for the same value; made once, because making it costs more."""


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
    parts: tuple[str, str] | None = field(init=False, compare=False)
    """What stands before and after `{n}` in the key."""

    def __post_init__(self) -> None:
        before, index, after = self.key.partition("{n}")
        object.__setattr__(self, "parts", (before, after) if index else None)


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
        # Most values are plain text: the shortest way for them.
        if type(value) is str and value and value.isascii():
            found[row.key] = value
        elif value is None or value == "":
            if row.level is Level.REQUIRED:
                found[row.key] = UNKNOWN
        elif row.parts is not None:
            _spread(found, row.parts, value)
        elif (kept := _kept(value)) is not None:
            found[row.key] = kept
    return found


def _spread(found: Attributes, parts: tuple[str, str], values: object) -> None:
    before, after = parts
    for index, value in enumerate(values if isinstance(values, Sequence) else ()):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  any list
        kept = _kept(value)
        if kept is not None and kept != "":
            found[f"{before}{index}{after}"] = kept


def _kept(value: object) -> AttributeValue | None:
    """Return what OTLP can carry: well-formed text, 64-bit integers, finite numbers; None for anything else."""
    if isinstance(value, str):
        return value if value.isascii() else well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else None
    if isinstance(value, tuple):
        return tuple(well_formed(item) for item in value if isinstance(item, str))  # pyright: ignore[reportUnknownVariableType]  checked
    return None


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
