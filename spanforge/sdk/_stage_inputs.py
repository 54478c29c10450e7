"""What several trace calls take alike."""

from __future__ import annotations

from typing import Any, Final

from spanforge._text import Note
from spanforge.sdk import _coerce as coerce
from spanforge.sdk._base import SFServiceClient, new_session_id
from spanforge.sdk._context import found_session
from spanforge.sdk._runtime import Runtime

__all__ = ["STAGE_BYTES", "error_of", "model_of", "nothing", "own_session_id", "session_of", "word_of"]

STAGE_BYTES: Final = 1_300
"""What an event of a stage takes in the queue, beside what it lists."""


def own_session_id(client: SFServiceClient, /, *_args: Any, session_id: Any = None, **_kwargs: Any) -> str:
    """What `trace_query` returns when all else failed: the caller's id, or a new one, so that its next call works."""
    return coerce.identifier(session_id) or new_session_id(client)


def nothing(*_args: Any, **_kwargs: Any) -> Any:
    """What a call that returns nothing returns when all else failed."""
    return None


def session_of(given: object, runtime: Runtime) -> str | None:
    """Return the session a call is about: the one given, else the one of the scope."""
    if given is None:
        own = found_session()
        if own is None:
            runtime.note("session_id_missing")
        return own
    return coerce.session_id(given, runtime.note)


def model_of(given: object, runtime: Runtime) -> str:
    model = coerce.name(given, "model", runtime.note)
    if not model:
        runtime.note("model_missing")
    return model or "unknown"


def error_of(given: object, runtime: Runtime) -> str | None:
    return None if given is None else runtime.cleaner.error(given)


def word_of(given: object, field: str, allowed: frozenset[str], note: Note) -> str | None:
    """Return one of the allowed words; None, noted, for any other."""
    return None if given is None else coerce.choice(given, field, allowed, note, otherwise="") or None
