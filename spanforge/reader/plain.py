"""Plain lines: events of this version, strict in every field, known from their bytes in one pass.

The types are made of the payload classes and take less than those do: no digits in quotes, no true for 1, no key the
class does not know, no absurd count. So a plain line is sound; whether another is, `Event.decode` and its
payload class say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypeAliasType, TypedDict

from spanforge.namespaces.event import SCHEMA_VERSION
from spanforge.namespaces.payload import LARGEST, NonEmpty, Payload
from spanforge.namespaces.stages import PAYLOADS

__all__ = ["plain"]

# Values differ from line to line, and would only push each other out of the cache.
_CONFIG: Final = ConfigDict(strict=True, extra="forbid", cache_strings="keys")
_REQUIRED: Final = ("event_id", "timestamp", "source", "session_id")
_OPTIONAL: Final = (
    *("trace_id", "span_id", "parent_span_id", "trace_flags", "org_id", "team_id", "actor_id"),
    *("chain_id", "prev_id", "checksum", "signature"),
)
_Whole: TypeAlias = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
# Whole numbers of every size first: what is left to floats loses its last digits.
_Value = TypeAliasType("_Value", "str | bool | int | _Number | list[_Value] | dict[str, _Value] | None")
# At run time these forms are functions of types; a checker takes them for types that are written out.
_UNION: Final[Any] = Union
_LITERAL: Final[Any] = Literal
_ANNOTATED: Final[Any] = Annotated
_DICT: Final[Any] = dict
_TYPED_DICT: Final[Any] = TypedDict


def plain(line: bytes) -> dict[str, Any] | None:
    """Return the envelope of a plain line as JSON values, None where the line is not plain."""
    try:
        return _validator().validate_json(line)
    except ValidationError:
        return None


@cache
def _validator() -> Any:
    envelopes = tuple(_envelope(event_type, payload) for event_type, payload in PAYLOADS.items())
    # The adapter's own method takes a third as long again, for options that are not used.
    return TypeAdapter(_ANNOTATED[_UNION[envelopes], Field(discriminator="event_type")]).validator


def _envelope(event_type: str, payload: type[Payload]) -> Any:
    return _record(
        event_type,
        {
            "schema_version": Literal[SCHEMA_VERSION],
            "event_type": Literal[event_type],
            **dict.fromkeys(_REQUIRED, NonEmpty),
            **dict.fromkeys(_OPTIONAL, NotRequired[str]),
            "tags": NotRequired[dict[str, str]],
            "payload": _payload(payload),
        },
    )


@cache
def _payload(payload: type[Payload]) -> Any:
    hints = get_type_hints(payload, include_extras=True)
    needed = {field.name for field in fields(payload) if field.default is field.default_factory is MISSING}
    strict = {name: _strict(hint) for name, hint in hints.items() if name in payload.__dataclass_fields__}
    return _record(payload.__name__, {n: hint if n in needed else NotRequired[hint] for n, hint in strict.items()})


def _record(name: str, hints: Mapping[str, Any]) -> Any:
    record = _TYPED_DICT(name, dict(hints))
    record.__pydantic_config__ = _CONFIG
    return record


def _strict(hint: Any) -> Any:
    """Return the type that takes what this one takes, as JSON says it and in no other form."""
    if hint is int:
        return _Whole
    if hint is Any:
        return _Value
    if _is_kind_of(Enum, hint):
        return _LITERAL[tuple(member.value for member in hint)]
    if _is_kind_of(Payload, hint):
        return _payload(hint)
    make = _MADE.get(get_origin(hint))
    return hint if make is None else make(hint, tuple(map(_strict, get_args(hint))))


def _is_kind_of(base: type, hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, base)


def _constrained(hint: Any, _arguments: tuple[Any, ...]) -> Any:
    # Python's own checks are what strictness stands for, and would be called for every number.
    constraints = (one for one in hint.__metadata__ if not isinstance(one, BeforeValidator))
    return _ANNOTATED[(_strict(hint.__origin__), *constraints)]


def _one_of(_hint: Any, arguments: tuple[Any, ...]) -> Any:
    return _UNION[arguments]


_MADE: Final[Mapping[Any, Callable[[Any, tuple[Any, ...]], Any]]] = {
    Annotated: _constrained,
    Union: _one_of,
    UnionType: _one_of,
    tuple: lambda _, arguments: list[arguments[0]],
    dict: lambda _, arguments: _DICT[arguments],
}
