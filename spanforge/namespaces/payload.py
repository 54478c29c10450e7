"""What every payload class shares: validation whose errors carry no input, and plain dicts both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_type_hints,
)

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic import Field as Constraint
from pydantic.dataclasses import dataclass as validated_dataclass
from pydantic_core import PydanticCustomError

from spanforge.exceptions import InvalidPayloadError


def _no_text(value: Any) -> Any:
    """Refuse digits in quotes, which the fold of stored events could not add up."""
    if isinstance(value, (str, bytes)):
        raise PydanticCustomError("number_expected", "should be a number, not text")
    return value


LARGEST: Final = 10**15
"""The largest count and time there is: thousands of such in one session can still be added up in 64 bits."""
LARGEST_COST: Final = 10**9
"""The largest cost of a call there is, in US dollars: in billionths it still has room in 64 bits."""
LARGEST_SUM: Final = (1 << 63) - 1
"""Where a sum of such stands still: what a column of 64 bits holds."""

_NUMBER = BeforeValidator(_no_text)
NonEmpty = Annotated[str, Constraint(min_length=1)]
Score = Annotated[float, _NUMBER, Constraint(ge=0.0, le=1.0, allow_inf_nan=False)]
Finite = Annotated[float, _NUMBER, Constraint(allow_inf_nan=False)]
Count = Annotated[int, _NUMBER, Constraint(ge=0, le=LARGEST)]
Sum = Annotated[int, _NUMBER, Constraint(ge=0, le=LARGEST_SUM)]
Amount = Annotated[float, _NUMBER, Constraint(ge=0.0, allow_inf_nan=False)]
Cost = Annotated[float, _NUMBER, Constraint(ge=0.0, le=LARGEST_COST, allow_inf_nan=False)]
Positive = Annotated[int, _NUMBER, Constraint(ge=1, le=LARGEST)]
Level = Annotated[int, _NUMBER, Constraint(ge=1, le=3)]
Milliseconds = Annotated[float, _NUMBER, Constraint(ge=0.0, le=LARGEST, allow_inf_nan=False)]

_CONFIG = ConfigDict(hide_input_in_errors=True, defer_build=True, extra="forbid")
_T = TypeVar("_T", bound="Payload")


class _CleanErrors(type):
    """Turns pydantic's error, which carries the input, into one that names the field and nothing else."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except ValidationError as error:
            refusal = _refusal(cls, error)
        # Raised here, outside the handler, so that the pydantic error does not hang on ours as its context.
        raise refusal


class Payload(metaclass=_CleanErrors):
    """Base of the payload classes.

    A payload is frozen, takes its fields by keyword or position, and refuses invalid values with an
    `InvalidPayloadError` that names the field.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values; absent ones are left out, never null."""
        return {field.name: _plain(value) for field in fields(self) if (value := getattr(self, field.name)) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build from a mapping; unknown keys, which a newer version may have written, are ignored.

        Raises:
            InvalidPayloadError: A field is missing or invalid.
        """
        known = _known(cls, data)
        for name, inner in _inner(cls).items():
            if isinstance(items := known.get(name), (list, tuple)):
                read = [_known(inner, item) if isinstance(item, dict) else item for item in cast("list[Any]", items)]
                known = {**known, name: read}
        try:
            # Half the time of a call with keywords, which go through Python once more.
            return _adapter(cls).validate_python(known)
        except ValidationError as error:
            refusal = _refusal(cls, error)
        raise refusal

    @classmethod
    def trusted(cls, values: dict[str, Any]) -> Self:
        """Build without validation from values this package computed itself.

        Every field must be present, and the dict becomes the payload's own: nobody may change it afterwards.
        """
        instance = object.__new__(cls)
        object.__setattr__(instance, "__dict__", values)
        return instance


@cache
def _adapter(cls: type[_T]) -> TypeAdapter[_T]:
    return TypeAdapter(cls)


@cache
def _inner(cls: type[Payload]) -> dict[str, type[Payload]]:
    """Return the fields that hold payloads themselves, and the class of those."""
    hints = ((name, get_args(hint)) for name, hint in get_type_hints(cls).items())
    return {
        name: arguments[0]
        for name, arguments in hints
        if arguments and isinstance(arguments[0], type) and issubclass(arguments[0], Payload)
    }


def _known(cls: type[Payload], data: Any) -> Any:
    """Leave out of a mapping the keys that the class does not know."""
    names = cls.__dataclass_fields__.keys()
    return data if data.keys() <= names else {name: value for name, value in data.items() if name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Payload):
        return value.to_dict()
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in cast("list[Any]", value)]
    return dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else value


@dataclass_transform(frozen_default=True)
def payload(cls: type[_T]) -> type[_T]:
    """Make a frozen, validated dataclass of a `Payload` subclass."""
    return cast("type[_T]", validated_dataclass(cls, config=_CONFIG, frozen=True))


def _refusal(cls: Any, error: ValidationError) -> InvalidPayloadError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field, *inner = first["loc"] or (cls.__name__,)
    # A positional argument is reported by its number.
    named = fields(cls)[field].name if isinstance(field, int) else field
    where = ".".join(str(part) for part in (named, *inner))
    return InvalidPayloadError(f"{cls.__name__}.{where}: {first['msg'][:1].lower()}{first['msg'][1:]}")
