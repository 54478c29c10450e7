"""One session across processes: the headers that carry it from one service to the next.

The session's id travels as a member of W3C `baggage`, its trace as W3C `traceparent`; both are left as they are
where OpenTelemetry, or somebody before us, has set them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Final
from urllib.parse import quote, unquote

from spanforge import _ids
from spanforge.sdk import sf_rag

__all__ = ["extract", "inject"]

_MEMBER: Final = "spanforge.session_id"
_MAX_BAGGAGE: Final = 8_192
_MAX_MEMBERS: Final = 64
_MAX_ID: Final = 256
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?")


def inject(headers: MutableMapping[str, str], session_id: str | None = None) -> None:
    """Write a session into the headers of a request that another service will answer for it.

    Args:
        headers: Changed in place: a member is added to `baggage`, and `traceparent` is set where it is not there.
        session_id: The session; the current one without it. Outside of any session nothing is written.
    """
    session_id = session_id or sf_rag.current_session_id()
    if not session_id or len(session_id) > _MAX_ID:
        return
    names = {name.lower(): name for name in headers}
    member = f"{_MEMBER}={quote(session_id, safe='', errors='replace')}"
    others = [text for name, text in _members(headers.get(names.get("baggage", ""), "")) if name != _MEMBER]
    baggage = ",".join([member, *others])
    if len(baggage) <= _MAX_BAGGAGE:
        headers[names.get("baggage", "baggage")] = baggage
    if "traceparent" not in names:
        trace_id = sf_rag.cell.get().trace_id(session_id)
        headers["traceparent"] = f"00-{trace_id}-{_ids.root_span_id_of(session_id)}-01"


def extract(headers: Mapping[str, str]) -> str | None:
    """Join the session that a request's headers carry.

    Args:
        headers: Of the request; the case of their names does not matter.

    Returns:
        The session's id, to give to the trace calls or to `sf_rag.attach()`; None where the headers carry none.
        This process's part ends with `end_session()`, like any other.
    """
    found = {name.lower(): value for name, value in headers.items() if name.lower() in {"baggage", "traceparent"}}
    members = dict(_members(found.get("baggage", "")[:_MAX_BAGGAGE]))
    if _MEMBER not in members:
        return None
    session_id = unquote(members[_MEMBER].partition("=")[2].partition(";")[0].strip(), errors="replace")
    if not session_id or len(session_id) > _MAX_ID or not session_id.isprintable():
        return None
    runtime = sf_rag.cell.get()
    if runtime.settings.disabled:
        return session_id
    return runtime.join(session_id, _parent(found.get("traceparent", ""), session_id))


def _members(baggage: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each member of a `baggage` header."""
    for text in baggage.split(",")[:_MAX_MEMBERS]:
        name = text.partition("=")[0].strip()
        if name:
            yield name, text.strip()


def _parent(traceparent: str, session_id: str) -> tuple[str, str] | None:
    """Return the trace that the session is in elsewhere, and the span it hangs under; None if it is its own."""
    match = _TRACEPARENT.fullmatch(traceparent.strip())
    if match is None or traceparent.startswith("ff"):
        return None
    trace_id, span_id = match.groups()
    return trace_id, "" if span_id == _ids.root_span_id_of(session_id) else span_id
