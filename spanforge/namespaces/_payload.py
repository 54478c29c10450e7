"""What every payload class shares: validation whose errors carry no input, and plain dicts both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, cast, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, ValidationError
from pydantic import Field as Constraint
from pydantic.dataclasses import dataclass as validated_dataclass
from pydantic_core import PydanticCustomError

from spanforge.exceptions import InvalidPayloadError


def _no_text(value: Any) -> Any:
    """Refuse digits in quotes, which the fold of stored events could not add up."""
    if isinstance(value, (str, bytes)):
        raise PydanticCustomError("number_expected", "should be a number, not text")
    return value


_NUMBER = BeforeValidator(_no_text)
NonEmpty = Annotated[str, Constraint(min_length=1)]
Score = Annotated[float, _NUMBER, Constraint(ge=0.0, le=1.0, allow_inf_nan=False)]
Finite = Annotated[float, _NUMBER, Constraint(allow_inf_nan=False)]
Count = Annotated[int, _NUMBER, Constraint(ge=0)]
# Whole microseconds must have room in 64 bits: sums are kept in them.
Milliseconds = Annotated[float, _NUMBER, Constraint(ge=0.0, le=1e15, allow_inf_nan=False)]

_CONFIG = ConfigDict(hide_input_in_errors=True, defer_build=True, extra="forbid")
_T = TypeVar("_T", bound="Payload")


class _CleanErrors(type):
    """Turns pydantic's error, which carries the input, into one that names the field and nothing else."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except ValidationError as error:
            problem = _describe([field.name for field in fields(cls)], error)  # pyright: ignore[reportArgumentType]  every payload is a dataclass
        # Raised here, outside the handler, so that the pydantic error does not hang on ours as its context.
        raise InvalidPayloadError(f"{cls.__name__}.{problem}")


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
        names = cls.__dataclass_fields__.keys()
        return cls(**{name: value for name, value in data.items() if name in names})

    @classmethod
    def trusted(cls, values: dict[str, Any]) -> Self:
        """Build without validation from values this package computed itself.

        Every field must be present, and the dict becomes the payload's own: nobody may change it afterwards.
        """
        instance = object.__new__(cls)
        object.__setattr__(instance, "__dict__", values)
        return instance


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


def _describe(names: list[str], error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field, *inner = first["loc"]
    # A positional argument is reported by its number.
    where = ".".join(str(part) for part in (names[field] if isinstance(field, int) else field, *inner))
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"
