"""Keys and attributes of whatever a store or a framework hands over, read without anything raised or called twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from spanforge._text import MAX_NODES, as_float, first, is_dict, is_row
from spanforge.sdk import _coerce

__all__ = ["Names", "as_dict", "fields", "get", "is_pair", "row", "snapshot"]

_BARE: Final = frozenset({str, bytes, int, float, bool, type(None), list, tuple})
_NO_FIELDS: Final[dict[str, Any]] = {}
_PAIR: Final = 2


class Names:
    """What is looked for, in the order in which it counts."""

    __slots__ = ("among", "ordered")

    def __init__(self, names: Iterable[str]) -> None:
        self.ordered = tuple(names)
        self.among: Callable[[Any], frozenset[str]] = frozenset(self.ordered).intersection

    def __iter__(self) -> Iterator[str]:
        """Yield them in that order."""
        return iter(self.ordered)


def row(value: object, most: int) -> tuple[list[Any], int]:
    """Return the first elements of a list, a tuple or an array, and how many it has; of anything else none."""
    found = _coerce.elements(value, most) if is_row(value) or type(value).__module__ == "numpy" else None
    return found or ([], 0)


def is_pair(value: Sequence[Any]) -> bool:
    """Tell whether this is a hit and its score."""
    inner = row(value, _PAIR + 1)[0]
    return len(inner) == _PAIR and any(as_float(one) is not None for one in inner)


_own_get: Final = cast("Callable[[Any, str], Any]", dict[Any, Any].get)
"""A subclass may override `get`."""


def fields(thing: object, names: Names) -> dict[str, Any]:
    """Return what something has under these names, in their order."""
    kind = type(thing)
    if kind is dict:
        # Nearly every hit is one, and has few of the many names that it might have.
        found: Any = thing
        present = names.among(found)
        if not present:
            return _NO_FIELDS
        ordered = names.ordered if len(present) > 1 else present
        return {name: value for name in ordered if name in present and (value := found[name]) is not None}
    if _has_no_fields(kind):
        return _NO_FIELDS
    if issubclass(kind, dict):
        return {name: value for name in names.ordered if (value := _own_get(thing, name)) is not None}
    return {name: value for name in names.ordered if (value := _coerce.attribute(thing, name)) is not None}


def get(thing: object, name: str) -> Any:
    """Read a key or an attribute; an attribute that raises reads as absent."""
    kind = type(thing)
    if issubclass(kind, dict):
        return _own_get(thing, name)
    return None if _has_no_fields(kind) else _coerce.attribute(thing, name)


@lru_cache(maxsize=1_024)
def _has_no_fields(kind: type) -> bool:
    """Tell whether things of a class have no fields, or are arrays and frames, whose fields are data."""
    return kind in _BARE or _coerce.is_array_type(kind)


def snapshot(thing: object, names: Names) -> Any:
    """Return an object's fields of these names as a dict, so that each is asked for once; anything else as it is."""
    kind = type(thing)
    if issubclass(kind, (dict, list, tuple)) or _has_no_fields(kind):
        return thing
    return fields(thing, _possible(kind, names))


@lru_cache(maxsize=1_024)
def _possible(kind: type, names: Names) -> Names:
    """Return those names that things of a class may have: pydantic takes as long to say that it has none as we to read.

    Most documents of frameworks are models of pydantic.
    """
    known, private = _coerce.attribute(kind, "__pydantic_fields__"), _coerce.attribute(kind, "__private_attributes__")
    if not is_dict(known) or not is_dict(private) or get(_coerce.attribute(kind, "model_config"), "extra") == "allow":
        return names
    return Names(
        name for name in names if name in known or name in private or _coerce.attribute(kind, name) is not None
    )


def as_dict(value: object) -> Any:
    """Return a mapping that is no dict, or a database's row with named columns, as a dict; anything else as it is."""
    convert = _conversion(type(value))
    return value if convert is None else convert(value)


@lru_cache(maxsize=1_024)
def _conversion(kind: type[Any]) -> Callable[[Any], Any] | None:
    """Return what makes a dict of things of a class; None where they stay as they are."""
    if issubclass(kind, (dict, str)):
        return None
    if issubclass(kind, tuple):
        return _named
    library, name = kind.__module__.partition(".")[0], kind.__name__
    if library == "sqlalchemy" and hasattr(kind, "_mapping"):
        return _labelled
    if issubclass(kind, Mapping) or (library, name) in {("sqlite3", "Row"), ("asyncpg", "Record")}:
        return lambda value: {name: value[name] for name in first(value.keys, MAX_NODES + 1)}
    return None


def _named(cells: Any) -> Any:
    names = _coerce.attribute(cells, "_fields")
    return dict(zip(names, cells, strict=False)) if is_row(names) and len(cells) > _PAIR else _positional(cells)


def _labelled(row_of_sqlalchemy: Any) -> Any:
    cells = tuple(row_of_sqlalchemy)
    if is_pair(cells) and _coerce.identifier(cells[0]) is None:
        return cells
    return dict(_coerce.attribute(row_of_sqlalchemy, "_mapping"))


def _positional(cells: Sequence[Any]) -> Any:
    """Read a database's row without names: the id first, the score last, a text between them."""
    if len(cells) <= _PAIR or _coerce.identifier(cells[0]) is None:
        return cells
    is_scored = type(cells[-1]) is not str and as_float(cells[-1]) is not None
    between = cells[1:-1] if is_scored else cells[1:]
    hit = {"id": cells[0], "text": next((cell for cell in between if type(cell) is str), None)}
    return {**hit, "?column?": cells[-1]} if is_scored else hit
