"""What is wrong with a value, in words: the field, what it takes, of what type the given one was; never the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from spanforge.reference.failures import InvalidInput

M = TypeVar("M", bound=BaseModel)
_TYPES = {
    "NoneType": "nothing",
    "bool": "a truth value",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
}


def checked(model: type[M], values: Mapping[str, Any]) -> M:
    """Return the model of some values.

    Raises:
        InvalidInput: One cannot be used; the message names the field, its range, and the type of what was given.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        # The error carries the input: only names, rules and types leave this block.
        found = complaints(error, model)
    raise InvalidInput("; ".join(f"{'.'.join(map(str, place))}: {text}" for place, text in found.items()) + ".")


def complaints(error: ValidationError, model: type[BaseModel]) -> dict[tuple[int | str, ...], str]:
    """Return by its place in the input what is wrong with each value."""
    found: dict[tuple[int | str, ...], str] = {}
    for item in error.errors(include_url=False, include_context=False):
        text = item["msg"].removeprefix("Value error, ")
        given = "" if item["type"] in {"missing", "json_invalid"} else f", and {type_of(item['input'])} was given"
        found.setdefault(item["loc"], f"{text[:1].lower()}{text[1:]}{_range(model, item['loc'])}{given}")
    return found


def type_of(value: object) -> str:
    """Return what kind of value it is, in a word that people who write JSON or Python know."""
    name = type(value).__name__
    return _TYPES.get(name, f"a value of type {name}")


def _range(model: type[BaseModel], place: tuple[int | str, ...]) -> str:
    field = next((field for name, field in model.model_fields.items() if place[:1] in {(name,), (field.alias,)}), None)
    if field is None or len(place) > 1:
        return ""
    bounds = _bounds(field)
    return f" ({' to '.join(bounds)})" if len(bounds) > 1 else ""


def _bounds(field: FieldInfo) -> list[str]:
    """Return the least and the greatest that a field takes, as far as it says so."""
    least = [str(_bound(one)) for one in field.metadata if isinstance(one, Ge | Gt | MinLen)]
    most = [str(_bound(one)) for one in field.metadata if isinstance(one, Le | Lt | MaxLen)]
    return [*least[:1], *most[:1]]


def _bound(rule: Ge | Gt | Le | Lt | MinLen | MaxLen) -> Any:
    (name,) = rule.__slots__
    return getattr(rule, name)
