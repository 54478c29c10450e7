"""Which text among a framework's inputs is the question."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from spanforge.integrations._quiet import quiet

__all__ = ["question_of"]

_NAMES: Final = ("input", "question", "query", "query_str", "text", "prompt", "messages")
_HUMAN: Final = frozenset({"human", "user"})
_DEPTH: Final = 4


@quiet
def question_of(given: Any, depth: int = 0) -> str | None:
    """Return the question in inputs: a text, the value under a usual name, or the last thing a person said.

    Args:
        given: Text, a mapping, a message, or a list of messages.
        depth: How far inside this is.
    """
    if isinstance(given, str):
        return given or None
    if given is None or depth > _DEPTH:
        return None
    if isinstance(given, Mapping):
        fields = cast("Mapping[str, Any]", given)
        if "content" in fields and "role" in fields:
            return _spoken(fields.get("role"), fields.get("content"))
        return next((found for name in _NAMES if (found := question_of(fields.get(name), depth + 1))), None)
    if isinstance(given, Sequence):
        messages = reversed(cast("Sequence[Any]", given))
        return next((found for one in messages if (found := _message(one, depth))), None)
    inner = getattr(given, "query_str", None) or getattr(given, "messages", None) or getattr(given, "message", None)
    return _message(given, depth) or question_of(inner, depth + 1)


def _message(given: Any, depth: int) -> str | None:
    if isinstance(given, (str, Mapping)):
        return question_of(given, depth + 1)
    if isinstance(given, tuple):
        return _spoken(*given) if len(given) == len(("role", "content")) else None
    content = getattr(given, "content", None)
    return _spoken(
        getattr(given, "type", None) or getattr(given, "role", None), content or getattr(given, "text", None)
    )


def _spoken(role: Any, content: Any) -> str | None:
    """Return the text of a message, if a person said it."""
    if str(getattr(role, "value", role)) not in _HUMAN:
        return None
    if isinstance(content, str):
        return content or None
    parts = cast("Sequence[Any]", content) if isinstance(content, Sequence) else ()
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, (str, Mapping))]
    return "".join(text for text in texts if isinstance(text, str)) or None
