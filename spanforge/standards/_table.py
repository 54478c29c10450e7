"""One declarative table for each standard: what is sent, how binding it is, and where the value comes from.

The tables are the mapping, not a description of it: the exporters read them, and so does the reference page.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

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
    "field_row",
    "nested",
]

AttributeValue: TypeAlias = str | bool | int | float | tuple[str, ...]
"""What an attribute of a span may be; everything here has a form in OTLP."""

Attributes: TypeAlias = dict[str, AttributeValue]

N = TypeVar("N")

UNKNOWN: Final = "unknown"
"""Stands where a standard requires a value that nobody gave."""

_GIVEN: Final = re.compile(r"^(\w+)\.(\w+)")

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
        key: Its name; with `{n}` in it, the value is a list of which each item gets its index, or a mapping of which
            each gets its key.
        level: How binding the standard calls it.
        read: Takes the value from what the row is about; None where there is none.
        origin: Where the value comes from, for the reference page.
        compliance: The frameworks the standard names for it.
        also: Another name that has the same value.
    """

    key: str
    level: Level
    read: Callable[[N], object]
    origin: str
    compliance: str = ""
    also: str = ""
    parts: tuple[str, str] | None = field(init=False, compare=False)
    """What stands before and after `{n}` in the key."""

    def __post_init__(self) -> None:
        before, index, after = self.key.partition("{n}")
        object.__setattr__(self, "parts", (before, after) if index else None)


def field_row(key: str, level: Level, origin: str, compliance: str = "") -> Row[Any]:
    """Return the row of a node's value that is sent as it was given.

    Args:
        key: Its name.
        level: How binding the standard calls it.
        origin: `event.field`, with what else the reference page says of it. Of a query's fields every node knows the
            latest; any other is one of the node's own payload.
        compliance: The frameworks the standard names for it.
    """
    event, field = _GIVEN.findall(origin)[0]
    return Row(key, level, attrgetter(f"{'facts' if event == 'query' else 'payload'}.{field}"), origin, compliance)


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
        unsaid: What is left unsaid, and why.
        checked: Which tools have read what is written.
        sections: Its tables.
    """

    name: str
    version: str
    note: str
    unsaid: str
    checked: str
    sections: tuple[Section, ...]


def collect(rows: Iterable[Row[N]], subject: N) -> Attributes:
    """Read every row from `subject`; a required text that nobody gave is `unknown`, any other is left out."""
    found: Attributes = {}
    for row in rows:
        value = row.read(subject)
        # Most values are plain text: the shortest way for them.
        if type(value) is str and value and value.isascii():
            kept: AttributeValue | None = value
        elif value is None or value == "":
            kept = UNKNOWN if row.level is Level.REQUIRED else None
        elif row.parts is not None:
            _spread(found, row.parts, value)
            continue
        else:
            kept = _kept(value)
        if kept is not None:
            found[row.key] = kept
            if row.also:
                found[row.also] = kept
    return found


def _spread(found: Attributes, parts: tuple[str, str], values: Any) -> None:
    """Give each item a name with its index or key in it, and each member of an item one below that."""
    before, after = parts
    items: Iterable[tuple[object, Any]] = (
        enumerate(cast("Sequence[Any]", values)) if isinstance(values, (list, tuple)) else values.items()
    )
    for index, item in items:
        name = f"{before}{index}{after}"
        if isinstance(item, dict):
            for member, value in cast("dict[str, Any]", item).items():
                _put(found, f"{name}.{member}", value)
        else:
            _put(found, name, item)


def _put(found: Attributes, name: str, value: object) -> None:
    kept = value if type(value) is str and value.isascii() else _kept(value)
    if kept is not None and kept != "":
        found[name if name.isascii() else well_formed(name)] = kept


def _kept(value: object) -> AttributeValue | None:
    """Return what OTLP can carry: well-formed text, integers, finite numbers; None for anything else."""
    if type(value) is int or type(value) is bool:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return well_formed(value)
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
