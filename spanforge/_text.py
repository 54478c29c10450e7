"""The one exit for values an application hands over: JSON-safe, bounded, and free of text.

Free text becomes its type and digest. Only exact, well-known types are looked into; any other object becomes a
marker with its class name, and none of its methods (`__repr__`, `__str__`, `__iter__`) is ever called. For the same
reason types are compared by `type(value)`: `isinstance` asks the value for its `__class__`, which it may refuse.
"""

from __future__ import annotations

import builtins
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from spanforge._hashing import Hasher, is_digest

Note: TypeAlias = Callable[[str], None]
"""Called with a reason each time an input is replaced or left out."""

T = TypeVar("T")

JsonValue: TypeAlias = Any
"""None, bool, int, float, str, or a list or dict of these: what `json.dumps(allow_nan=False)` takes."""

MAX_DEPTH: Final = 8
MAX_NODES: Final = 1_000
MAX_CAPTURED: Final = 512
_MAX_CLASS_NAME: Final = 64
_LOOKED_AT: Final = 4_096
_LONGEST_SECRET: Final = 640
_LAST_WORD: Final = re.compile(r"\S*\Z")
_TRIES: Final = 10
_INT64: Final = 1 << 63
_SURROGATE = re.compile("[\ud800-\udfff]")
PATHS: Final = frozenset({Path, PurePath, PurePosixPath, PureWindowsPath, type(Path())})
_FIELD_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]{0,63}")

FAILURE_CODES: Final = frozenset(
    {
        "CONTEXT_IGNORED",
        "CONTEXT_OVERFLOW",
        "EMBEDDING_FAILED",
        "GENERATION_FAILED",
        "GROUNDING_FAILED",
        "INDEX_FULL",
        "INDEX_UNAVAILABLE",
        "INSUFFICIENT_CONTEXT",
        "NOT_GROUNDED",
        "NO_ACCESSIBLE_SOURCES",
        "NO_RESULTS",
        "PARSE_ERROR",
        "PERMISSION_DENIED",
        "RERANK_FAILED",
        "TEMPLATE_ERROR",
        "UNSUPPORTED_FORMAT",
    }
)
"""The failure codes of the RAG contract (rag-contract, sub-contracts 1 to 5): kept as they are."""

_ERROR_NAMES = FAILURE_CODES | {
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
}

# Order matters: a key or an address is recognised before the digits inside it are.
_SECRETS: Final = (
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"), "[email]"),
    (re.compile(r"(?i)\b(?:bearer|basic|token|api[_-]?key|secret|password)\b[\s:=\"']{1,8}[^\s\"',;]{4,}"), "[token]"),
    (re.compile(r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|xox[abprs]|hf|glpat)[-_][\w-]{8,}"), "[key]"),
    (re.compile(r"\b(?:AKIA|ASIA|AIza|ya29\.|eyJ)[\w./+=-]{12,}"), "[key]"),
    (re.compile(r"\b(?:\d[ -]?){12,18}\d\b"), "[card]"),
    (re.compile(r"(?<!\w)\+?\(?\d[\d ().-]{7,17}\d(?!\w)"), "[phone]"),
    (re.compile(r"\b[A-Za-z0-9+/_=-]{32,}"), "[key]"),
)


_OPERATORS: Final = frozenset(
    {
        "all", "and", "any", "between", "contains", "eq", "exists", "field", "filter", "gt", "gte", "in", "key", "lt",
        "lte", "match", "must", "must_not", "ne", "nin", "not", "op", "operator", "or", "range", "should", "term",
        "terms", "value", "values",
    }
)  # fmt: skip
"""Words of the filter languages of vector stores: kept as keys at any depth."""


def is_dict(value: object) -> TypeGuard[dict[Any, Any]]:
    """Tell whether `value` is a dict, of anything."""
    return issubclass(type(value), dict)


def is_row(value: object) -> TypeGuard[Sequence[Any]]:
    """Tell whether `value` is a list or a tuple, of anything."""
    return issubclass(type(value), (list, tuple))


def first(iterate: Callable[[], Iterable[T]], most: int) -> list[T]:
    """Return the first elements of a collection, at a cost that `most` bounds and the collection's length does not.

    Args:
        iterate: Begins to iterate; called again where another thread has changed the collection meanwhile.
        most: Elements to return at most.
    """
    for _ in range(_TRIES):
        try:
            return list(islice(iterate(), most))
        except RuntimeError:
            continue
    return []


def unwrapped(value: Any) -> Any:
    """Return the value inside an enum member, and a plain string for one of a subclass; all else as it is."""
    if type(value) is str:
        return value
    if issubclass(type(value), Enum):
        value = value._value_
    return str.__str__(value) if issubclass(type(value), str) else value


def well_formed(text: str) -> str:
    """Return `text` with each lone surrogate, which UTF-8 and strict JSON cannot carry, as U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def storable(text: str) -> str:
    """Return text that databases take: lone surrogates, which they do not, stand as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def scrub(text: str) -> str:
    """Return at most 512 characters of `text` with e-mail, phone, card, key and token patterns masked."""
    if len(text) > _LOOKED_AT:
        # A secret cut in two would escape its pattern, so the last, perhaps broken, word goes too.
        end = _LOOKED_AT - _LONGEST_SECRET
        text = text[:end] + _LAST_WORD.sub("", text[end:_LOOKED_AT])
    for pattern, mask in _SECRETS:
        text = pattern.sub(mask, text)
    return well_formed(text[:MAX_CAPTURED])


def class_name(kind: Any) -> str:
    """Return a class's name, if it is short and one that code can have: classes can be made of text."""
    name = kind.__name__
    return name if len(name) <= _MAX_CLASS_NAME and name.isidentifier() else "class"


_own_items: Final = cast("Callable[[Any], Iterable[tuple[Any, Any]]]", dict[Any, Any].items)
"""Not even dict's own copy() uses it where a subclass has its own iteration."""


class Cleaner:
    """Applies one privacy policy to every free-text or structured input.

    Args:
        hasher: Makes the digests.
        allow: Keys whose string values are kept, scrubbed and cut.
        capture: Keep every message scrubbed and cut instead of as a digest.
    """

    __slots__ = ("_allow", "_capture", "hasher")

    def __init__(self, hasher: Hasher, allow: frozenset[str] = frozenset(), *, capture: bool = False) -> None:
        self.hasher = hasher
        self._allow = allow
        self._capture = capture

    def text(self, value: str, key: str = "") -> str:
        """Return what is kept of free text under `key`."""
        if self._capture or key in self._allow:
            return scrub(value)
        return self.hasher.labelled("str", value)

    def error(self, value: object) -> str:
        """Return what is kept of an error: the class name of an exception, a known code, else a digest."""
        if issubclass(type(value), type):
            return class_name(value)
        value = unwrapped(value)
        if type(value) is not str:
            return class_name(type(value))
        return value if value in _ERROR_NAMES else self.text(value, "error_message")

    def keeps_key(self, key: str, depth: int) -> bool:
        """Tell whether a key is kept: a field's name at the top, an operator or an allowed key below it.

        Below the top, keys are often data: terms with their counts, words with their highlights.
        """
        if depth and key not in self._allow and key not in _OPERATORS and not key.startswith("$"):
            return False
        return _FIELD_NAME.fullmatch(key) is not None

    def digest(self, value: object) -> str:
        """Return what stands where a digest belongs: a digest as given, any other text hashed."""
        value = unwrapped(value)
        if type(value) is str:
            return value if not value or is_digest(value) else self.hasher.digest(value)
        return self.hasher.digest(value) if type(value) is bytes and value else ""

    def mapping(self, value: object, note: Note) -> dict[str, JsonValue]:
        """Return a JSON-safe copy of a metadata or filter mapping; what cannot be kept is noted by reason."""
        if value is None:
            return {}
        if not is_dict(value):
            note("not_a_mapping")
            return {}
        return _Walk(self, note).mapping(value, 0)


class _Walk:
    """One pass over one nested value, with its budget of nodes and the containers on the current path."""

    __slots__ = ("_budget", "_cleaner", "_note", "_path")

    def __init__(self, cleaner: Cleaner, note: Note) -> None:
        self._cleaner = cleaner
        self._note = note
        self._budget = MAX_NODES
        self._path: set[int] = set()

    def mapping(self, value: dict[Any, Any], depth: int) -> dict[str, JsonValue]:
        kept: dict[str, JsonValue] = {}
        self._path.add(id(value))
        for key, item in first(lambda: _own_items(value), self._budget + 1):
            if self._budget <= 0:
                self._note("too_many_values")
                break
            name = self._key(key, depth)
            kept[name] = self._value(item, name, depth + 1)
        self._path.discard(id(value))
        return kept

    def _key(self, key: object, depth: int) -> str:
        key = unwrapped(key)
        if type(key) is str:
            return key if self._cleaner.keeps_key(key, depth) else self._cleaner.hasher.labelled("key", key)
        if key is None or type(key) in {bool, int, float, UUID}:
            return str(key)[:MAX_CAPTURED] if type(key) is not int or abs(key) < _INT64 else "int"
        self._note("key_type")
        return f"key:{class_name(type(key))}"

    def _value(self, value: object, key: str, depth: int) -> JsonValue:
        self._budget -= 1
        value = unwrapped(value)
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return self._cleaner.text(cast("str", value), key)
        if issubclass(kind, (int, float, Decimal)) or kind.__module__ == "numpy":
            return self._number(value)
        if issubclass(kind, (dict, list, tuple, set, frozenset, deque)):
            return self._container(value, key, depth)
        return self._scalar(value)

    def _container(self, value: Any, key: str, depth: int) -> JsonValue:
        if depth > MAX_DEPTH or id(value) in self._path:
            self._note("nested_too_deep" if depth > MAX_DEPTH else "cycle")
            return f"type:{class_name(type(value))}"
        if is_dict(value):
            return self.mapping(value, depth)
        self._path.add(id(value))
        kept = self._items(first(lambda: _own_iteration(value), self._budget + 1), key, depth)
        self._path.discard(id(value))
        # Sets have no order of their own; sorting keeps the same input to the same line.
        return sorted(kept, key=repr) if issubclass(type(value), (set, frozenset)) else kept

    def _items(self, values: Iterable[object], key: str, depth: int) -> list[JsonValue]:
        kept: list[JsonValue] = []
        for item in values:
            if self._budget <= 0:
                self._note("too_many_values")
                break
            kept.append(self._value(item, key, depth + 1))
        return kept

    def _number(self, value: Any) -> JsonValue:
        if type(value).__module__ == "numpy":
            if getattr(value, "shape", None) != ():
                return f"type:{class_name(type(value))}"
            value = value.item()
        if type(value) is bool or (type(value) is int and -_INT64 <= value < _INT64):
            return value
        number = as_float(value)
        if number is None:
            self._note("not_finite")
        return number

    def _scalar(self, value: object) -> JsonValue:
        kind = type(value)
        if kind in {bytes, bytearray}:
            return self._cleaner.hasher.labelled("bytes", bytes(cast("bytes", value)))
        if kind in PATHS:
            return self._cleaner.hasher.labelled("path", str(value))
        if kind is UUID:
            return str(value)
        if kind is timedelta:
            return cast("timedelta", value).total_seconds()
        if kind in {date, time, datetime}:
            moment = cast("datetime", value)
            zone = getattr(moment, "tzinfo", None)
            if zone is None or type(zone) in {timezone, ZoneInfo}:
                return moment.isoformat()
        self._note("unknown_type")
        return f"type:{class_name(type(value))}"


def _own_iteration(value: Any) -> Iterable[object]:
    """Iterate by the built-in type's own method: a subclass may override `__iter__`."""
    bases: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
    return next(base for base in bases if issubclass(type(value), base)).__iter__(value)


def _own_float(value: Any) -> float:
    """Convert by the built-in type's own method: a subclass may override `__float__`."""
    for base in (float, int, Decimal):
        if issubclass(type(value), base):
            return base.__float__(value)
    text = str.__str__(value)
    return float(text) if len(text) <= MAX_CAPTURED else math.nan


def as_float(value: Any) -> float | None:
    """Return a finite float for a number, a numpy scalar, a Decimal or a numeric string; None for anything else."""
    kind = cast("type[Any]", type(value))
    if kind is float:
        return value if math.isfinite(value) else None
    if not issubclass(kind, (int, float, Decimal, str)):
        if kind.__module__ != "numpy" or getattr(value, "shape", None) != ():
            return None
        value = value.item()
    try:
        number = _own_float(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if math.isfinite(number) else None
