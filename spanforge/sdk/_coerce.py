"""Single values as applications hand them over, made usable or replaced, and counted where they were.

Each function takes the short way for the values that well-behaved callers pass, and calls no method that a value
could have of its own: whatever one field is, the others are recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Any, Final, cast
from uuid import UUID

from spanforge._hashing import Hasher
from spanforge._text import Note, as_float, unwrapped, well_formed
from spanforge.delivery.guard import guarded

__all__ = [
    "attribute",
    "choice",
    "count",
    "elements",
    "flag",
    "id_list",
    "identifier",
    "milliseconds",
    "name",
    "number",
    "query_text",
    "score",
    "session_id",
]

MAX_ID: Final = 512
MAX_NAME: Final = 256
_NANO: Final = 1_000_000_000
_MAX_MS: Final = 1e12
"""Thirty years: the longest time, in milliseconds, whose microseconds a float still tells apart."""
_PLAIN: Final = Hasher()


def name(value: object, field: str, note: Note) -> str:
    """Return a short label (model, retriever, namespace …), at most 256 characters."""
    if type(value) is str and len(value) <= MAX_NAME and value.isascii():
        return value
    value = unwrapped(value)
    if value is None:
        return ""
    if type(value) is str:
        if len(value) > MAX_NAME:
            note(f"{field}_too_long")
        return well_formed(value[:MAX_NAME])
    if type(value) in {int, float, bool, UUID}:
        return str(value)[:MAX_NAME] if type(value) is not int else identifier(value) or ""
    note(field)
    return ""


def identifier(value: object) -> str | None:  # noqa: PLR0911  one line for each kind of id
    """Return an id as text, None for what cannot be one. A longer id than 512 characters becomes its digest."""
    if type(value) is str and value.isascii():
        return value if len(value) <= MAX_ID else f"sha256:{_PLAIN.digest(value)}"
    value = unwrapped(value)
    if type(value) is str:
        value = well_formed(value)
        return value if len(value) <= MAX_ID else f"sha256:{_PLAIN.digest(value)}"
    if type(value) is bytes:
        return value.hex() if len(value) <= MAX_ID // 2 else f"sha256:{_PLAIN.digest(value)}"
    if type(value) is int:
        # Python refuses to print very large ints; in hexadecimal there is no limit.
        return str(value) if value.bit_length() <= MAX_ID else f"sha256:{_PLAIN.digest(hex(value))}"
    if type(value) is UUID:
        return str(value)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return identifier(cast("Any", value).item())
    return None


def session_id(value: object, note: Note) -> str | None:
    """Return a session id as text; None, noted, for what cannot be one."""
    if value is None:
        return None
    text = identifier(value)
    if not text:
        note("session_id")
    return text or None


def id_list(values: object, field: str, limit: int, note: Note) -> list[str]:
    """Return a list of ids; those that cannot be one are left out, noted."""
    if values is None:
        return []
    items = elements(values)
    if items is None:
        note(field)
        return []
    kept: list[str] = []
    for item in items:
        if len(kept) >= limit:
            note(f"{field}_too_many")
            break
        if type(item) is str and 0 < len(item) <= MAX_ID and item.isascii():
            kept.append(item)
        elif text := identifier(item):
            kept.append(text)
        else:
            note(field)
    return kept


def count(value: Any, field: str, note: Note, *, default: int = 0, minimum: int = 0) -> int:
    """Return a whole number of at least `minimum`; `default`, noted, for what is none."""
    if type(value) is int and minimum <= value < 1 << 63:
        return value
    if value is None:
        return default
    number = as_float(value)
    if number is None or not minimum <= number < 1 << 63:
        note(field)
        return default
    return int(number)


def milliseconds(value: Any, field: str, note: Note) -> float:
    """Return a time in milliseconds, a whole number of microseconds; 0, noted, for negatives and non-numbers."""
    if type(value) is float and 0.0 <= value < _MAX_MS:
        return int(value * 1000 + 0.5) / 1000
    if type(value) is timedelta:
        value = value.total_seconds() * 1000
    if value is None:
        return 0.0
    number = as_float(value)
    if number is None or number < 0:
        note(field)
        return 0.0
    if number >= _MAX_MS:
        note(f"{field}_too_long")
        return _MAX_MS
    return int(number * 1000 + 0.5) / 1000


def score(value: Any, field: str, note: Note) -> float | None:
    """Return a measure in [0, 1], a whole number of 1e-9; None, noted, for what is not one."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return int(value * _NANO + 0.5) / _NANO
    if value is None:
        return None
    number = as_float(value)
    if number is None or not 0.0 <= number <= 1.0:
        note(field)
        return None
    return int(number * _NANO + 0.5) / _NANO


def number(value: Any, field: str, note: Note) -> float | None:
    """Return a finite number; None, noted, for what is not one."""
    if value is None:
        return None
    result = as_float(value)
    if result is None:
        note(field)
    return result


def choice(value: Any, field: str, allowed: frozenset[str], note: Note, *, otherwise: str) -> str:
    """Return one of the allowed words; `otherwise`, noted, for anything else."""
    if type(value) is not str:
        value = unwrapped(value)
    if type(value) is str and value in allowed:
        return value
    note(field)
    return otherwise


def flag(value: object) -> bool | None:
    """Return a flag that may be absent; numbers count as in Python, anything else as false."""
    return None if value is None else bool(as_float(value))


def attribute(value: object, name: str) -> Any:
    """Read an attribute; one that raises reads as absent."""
    return _getattr(value, name, None)


def _none(*_: Any) -> None:
    return None


_getattr: Final[Callable[[object, str, Any], Any]] = guarded(getattr, _none, meant=())


def elements(values: Any) -> Iterable[Any] | None:
    """Return the elements of a collection that can be read without using it up; None for anything else."""
    kind = cast("type[Any]", type(values))
    bases: tuple[Any, ...] = (list, tuple, dict, set, frozenset, deque)
    for base in bases:
        if issubclass(kind, base):
            return base.__iter__(values)
    if kind.__module__ == "numpy" and getattr(values, "ndim", 0) == 1:
        return values.tolist()
    if issubclass(kind, (str, bytes, bytearray)) or not issubclass(kind, (Sequence, AbstractSet, ValuesView)):
        return None
    return _listed(values)


_listed: Final[Callable[[Iterable[Any]], list[Any] | None]] = guarded(list, _none, meant=())


def query_text(value: object, note: Note) -> str | bytes:
    """Return what of a query is hashed: its text, or the text inside a framework's query object."""
    value = unwrapped(value)
    if value is None:
        return ""
    if type(value) in {str, bytes}:
        return cast("str | bytes", value)
    if type(value) in {int, float, bool}:
        return str(value) if type(value) is not int else identifier(value) or ""
    inner = unwrapped(attribute(value, "query_str"))
    if type(inner) is str:
        return inner
    note("query")
    return ""
