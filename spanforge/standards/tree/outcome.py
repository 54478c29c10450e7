"""How a stage ended, and how the session around it did."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from spanforge.namespaces.errors import error_type
from spanforge.namespaces.payload import Payload
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.standards.tree.session import Session

__all__ = ["OTHER", "Status", "error_of", "error_of_root"]

Status: TypeAlias = Literal["unset", "error"]
"""A span's status: unset unless there was an error, as OpenTelemetry asks of instrumentation."""

_FAILED: Final = frozenset({"error", "timeout"})
OTHER: Final = "_OTHER"
"""Names an error of which nothing but a digest is known."""


def error_of(payload: Payload) -> str:
    """Return a low-cardinality name of a stage's error; empty where it did not fail.

    `timeout` for time-outs; the class or code that was recorded; `_OTHER` where only a digest was kept.
    """
    status = getattr(payload, "status", "ok")
    return error_type(status, getattr(payload, "error_message", None) or "") if status in _FAILED else ""


def error_of_root(summary: RAGSessionPayload, session: Session) -> str:
    """Return the name of the error that a session ended with; empty where it was handled, or there was none.

    An error is handled where a later stage succeeded, as a fallback does. Without any stage to judge by, the summary
    is believed.
    """
    if summary.error_type:
        return error_type("error", summary.error_type)
    last = session.known.last
    if last is not None:
        return error_of(last)
    return OTHER if summary.status == "error" else ""
