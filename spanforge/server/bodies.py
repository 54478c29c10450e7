"""From the bytes of a request to a checked body. What is wrong is said by field, never by value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from spanforge.reference.wording import complaints
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from fastapi import Request

M = TypeVar("M", bound=BaseModel)

JSON: Final = "application/json"
MULTIPART: Final = "multipart/form-data"
_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
"""Strings and brackets. A string that never ends is one token: else each quote in it would be searched from anew."""
_FIELD: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN: Final = 8


def media_type(request: Request) -> str:
    """Return the media type of the body, in lower case and without parameters.

    Raises:
        Problem: The body is compressed. It would have to be unfolded to be measured, and nothing here needs that.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise Problem("UNSUPPORTED_MEDIA_TYPE", "Send the body as it is, without a Content-Encoding.")
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_body(request: Request, model: type[M], max_depth: int) -> M:
    """Read a JSON body.

    Raises:
        Problem: Another media type, nested too deeply, or not what the model says.
    """
    if media_type(request) != JSON:
        raise Problem("UNSUPPORTED_MEDIA_TYPE", f"Send the body as {JSON}.")
    body = await request.body()
    if nested_deeper(body, max_depth):
        raise Problem("INVALID_INPUT", f"The body is nested more than {max_depth} levels deep; flatten it.")
    problem: Problem
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        # The error carries the input: only names and rules leave this block.
        problem = invalid(error, model)
    raise problem


def nested_deeper(body: bytes, limit: int) -> bool:
    """Tell whether JSON is nested deeper than a limit, without building it."""
    if body.count(b"[") + body.count(b"{") <= limit:
        return False
    depth = 0
    for token in _TOKENS.finditer(body):
        first = token[0][:1]
        if first in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif first in b"]}":
            depth -= 1
    return False


def invalid(error: ValidationError, model: type[BaseModel]) -> Problem:
    """Return the problem that a body of the wrong form is answered with."""
    found: dict[str, str] = {}
    for place, text in complaints(error, model).items():
        found.setdefault(_field(place), text)
    shown = list(found.items())[:_SHOWN]
    detail = "; ".join(f"{name}: {text}" for name, text in shown)
    return Problem("INVALID_INPUT", f"{detail}.", fields=tuple(name for name, _ in shown))


def _field(loc: tuple[Any, ...]) -> str:
    """Name a place in the body.

    Classes of a union are left out; a key that is no plain name, which might be anything, is not repeated.
    """
    parts = [str(part) for part in loc if isinstance(part, int) or not part[:1].isupper()]
    return ".".join(part if _FIELD.fullmatch(part) else "(a key)" for part in parts) or "body"
