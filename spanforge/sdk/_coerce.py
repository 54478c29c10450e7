"""Single values as applications hand them over, made usable or replaced, and counted where they were.

Each function takes the short way for the values that well-behaved callers pass, and calls no method that a value
could have of its own: whatever one field is, the others are recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from spanforge._guard import guarded
from spanforge._hashing import Hasher
from spanforge._text import Note, as_float, first, unwrapped, well_formed
from spanforge.namespaces.ceiling import described
from spanforge.namespaces.payload import LARGEST, LARGEST_COST
from spanforge.sdk._scores import METRICS
from spanforge.sdk._unsaid import COUNT, TIME

__all__ = [
    "amount",
    "attribute",
    "ceiling",
    "choice",
    "count",
    "elements",
    "flag",
    "id_list",
    "identifier",
    "is_array",
    "metric",
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

D = TypeVar("D", int, None)


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
    # Some may be unusable, so a few more are looked at than are kept.
    plain = cast("list[Any] | None", values if type(values) is list else None)
    found = (plain, 0) if plain is not None and len(plain) <= limit else elements(values, 2 * limit)
    if found is None:
        note(field)
        return []
    kept: list[str] = []
    for item in found[0]:
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


def count(value: Any, field: str, note: Note, *, default: D = None, minimum: int = 0) -> int | D:
    """Return a whole number of at least `minimum` and at most `LARGEST`; `default`, noted, for what is none."""
    if type(value) is int and minimum <= value <= LARGEST:
        return value
    if value is None or value is COUNT:
        return default
    number = as_float(value)
    if number is None or not minimum <= number <= LARGEST:
        note(field)
        return default
    return int(number)


def milliseconds(value: Any, field: str, note: Note) -> float | None:
    """Return a time in milliseconds, a whole number of microseconds; None, noted, for negatives and non-numbers."""
    if type(value) is float and 0.0 <= value < _MAX_MS:
        return int(value * 1000 + 0.5) / 1000
    if type(value) is timedelta:
        value = value.total_seconds() * 1000
    if value is None or value is TIME:
        return None
    number = as_float(value)
    if number is None or number < 0:
        note(field)
        return None
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


def metric(value: object, note: Note) -> str:
    """Return the name of a metric, in small letters; empty, noted, for one that is not known."""
    word = unwrapped(value)
    if type(word) is str and (not word or word.lower() in METRICS):
        return word.lower()
    if value is not None:
        note("metric")
    return ""


def number(value: Any, field: str, note: Note) -> float | None:
    """Return a finite number; None, noted, for what is not one."""
    if value is None:
        return None
    result = as_float(value)
    if result is None:
        note(field)
    return result


def amount(value: Any, field: str, note: Note) -> float | None:
    """Return an amount of money; None, noted, for what is not one."""
    result = number(value, field, note)
    if type(value) is bool or (result is not None and not 0 <= result <= LARGEST_COST):
        note(field)
        return None
    return result


def ceiling(value: object, field: str, note: Note) -> str | None:
    """Return a description of a budget; None, noted, for one that is not made of numbers and known words."""
    if value is None:
        return None
    given = unwrapped(value)
    text = described(given) if type(given) is str else None
    if text is None:
        note(field)
    return text


def choice(value: Any, field: str, allowed: frozenset[str], note: Note, *, otherwise: str) -> str:
    """Return one of the allowed words; `otherwise`, noted, for anything else."""
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


_MANY: Final = ("__array__", "__dataframe__", "__arrow_c_stream__")


def is_array(value: object) -> bool:
    """Tell whether a value is an array, a column, a frame or a tensor: looking for an attribute may index all of it."""
    return is_array_type(type(value))


def is_array_type(kind: type) -> bool:
    """Tell it of a class."""
    return any(_getattr(kind, name, None) is not None for name in _MANY)


def _none(*_: Any) -> Any:
    return None


_getattr: Final[Callable[[object, str, Any], Any]] = guarded(getattr, _none, meant=())


def elements(values: Any, most: int) -> tuple[list[Any], int] | None:
    """Return the first elements of a collection and how many it has; None for what reading would use up.

    What it costs is bounded by `most`, however long the collection is.
    """
    kind = cast("type[Any]", type(values))
    bases: tuple[Any, ...] = (list, tuple, dict, set, frozenset, deque)
    for base in bases:
        if issubclass(kind, base):
            return first(lambda: base.__iter__(values), most), base.__len__(values)  # noqa: B023  called at once
    if kind.__module__ == "numpy" and getattr(values, "ndim", 0) == 1:
        return values[:most].tolist(), values.shape[0]
    if issubclass(kind, (str, bytes, bytearray)) or not issubclass(kind, (Sequence, AbstractSet, ValuesView)):
        return None
    return _elements(values, most)


@partial(guarded, recover=_none, meant=())
def _elements(values: Sequence[Any], most: int) -> tuple[list[Any], int] | None:
    return first(lambda: values, most), len(values)


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
