"""spanforge: in-process, local-first observability for Retrieval-Augmented Generation.

Everything is reached through this door, and loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spanforge._absent import explain_imports, sentence
from spanforge._version import __version__

if TYPE_CHECKING:
    from spanforge.reader import read_events
    from spanforge.sdk import configure, sf_feedback, sf_rag

__all__ = ["__version__", "configure", "flush", "get_status", "read_events", "sf_feedback", "sf_rag", "shutdown"]

_HOMES = {
    "configure": "spanforge.sdk",
    "read_events": "spanforge.reader",
    "sf_feedback": "spanforge.sdk",
    "sf_rag": "spanforge.sdk",
}

explain_imports()


def flush(timeout: float = 5.0) -> int:
    """Wait until every event emitted so far is settled; returns how many deliveries are still pending."""
    from spanforge.sdk import sf_rag  # noqa: PLC0415  the door loads nothing until it is used

    return sf_rag.flush(timeout)


def shutdown(timeout: float = 5.0) -> int:
    """End open sessions, deliver what can be in `timeout` seconds, close the sinks; returns what was given up."""
    from spanforge.sdk import sf_rag  # noqa: PLC0415  the door loads nothing until it is used

    return sf_rag.shutdown(timeout)


def get_status() -> Any:
    """Return `spanforge.sdk.RAGStatusInfo`: what arrived, what failed, what was dropped and why."""
    from spanforge.sdk import sf_rag  # noqa: PLC0415  the door loads nothing until it is used

    return sf_rag.get_status()


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(sentence(f"spanforge.{name}"))
    return getattr(import_module(home), name)
