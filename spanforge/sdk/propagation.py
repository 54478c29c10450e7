"""One session across processes: the headers that carry it from one service to the next.

The session's id travels as a member of W3C `baggage`, its trace as W3C `traceparent`; both are left as they are
where OpenTelemetry, or somebody before us, has set them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import partial
from itertools import islice
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from spanforge import _ids
from spanforge._guard import guarded
from spanforge.namespaces.event import NOT_SAMPLED, Parent
from spanforge.sdk import _coerce as coerce
from spanforge.sdk import sf_rag
from spanforge.sdk._cell import RuntimeCell
from spanforge.sdk._never_raises import never_raises

__all__ = ["extract", "inject"]

_MEMBER: Final = "spanforge.session_id"
_CARRIERS: Final = frozenset({"baggage", "traceparent"})
_MAX_BAGGAGE: Final = 8_192
_MAX_MEMBERS: Final = 64
_MAX_HEADERS: Final = 1_000
_MAX_ID: Final = 256
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


def _cell(_args: tuple[Any, ...]) -> RuntimeCell:
    return sf_rag.cell


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """What is written or joined where a call fails."""


def _note(*_: Any) -> None:
    sf_rag.cell.get().note("headers")


def _note_none(*_: Any) -> dict[str, str]:
    _note()
    return {}


@never_raises(_nothing, cell=_cell)
def inject(headers: MutableMapping[str, str], session_id: str | None = None) -> None:
    """Write a session into the headers of a request that another service will answer for it.

    Headers that cannot be written to are left as they are, and counted in `get_status().replaced` as `headers`.

    Args:
        headers: Changed in place: a member is added to `baggage`, and `traceparent` is set where it is not there.
        session_id: The session; the current one without it. Outside of any session nothing is written.
    """
    given = coerce.identifier(session_id) or sf_rag.current_session_id()
    if not given or len(given) > _MAX_ID:
        return
    runtime = sf_rag.cell.get()
    _write(headers, runtime.run_id(given), runtime.trace_of(given))


@partial(guarded, recover=_note)
def _write(headers: MutableMapping[str, str], session_id: str, trace: Parent) -> None:
    names = {name.lower(): name for name in headers}
    member = f"{_MEMBER}={quote(session_id, safe='', errors='replace')}"
    others = [text for name, text in _members(headers.get(names.get("baggage", ""), "")) if name != _MEMBER]
    baggage = ",".join([member, *others])
    if len(baggage) <= _MAX_BAGGAGE:
        headers[names.get("baggage", "baggage")] = baggage
    if "traceparent" not in names:
        flags = "01" if trace.sampled else NOT_SAMPLED
        headers["traceparent"] = f"00-{trace.trace_id}-{_ids.root_span_id_of(session_id)}-{flags}"


@never_raises(_nothing, cell=_cell)
def extract(headers: Mapping[str, str] | Iterable[tuple[bytes, bytes]]) -> str | None:
    """Join the session that a request's headers carry.

    Args:
        headers: Of the request, as a mapping or as the pairs of bytes that an ASGI server hands over; the case of
            their names does not matter. What comes from outside is never an error; anything that is no headers at
            all is counted in `get_status().replaced` as `headers`.

    Returns:
        The session's id, to give to the trace calls or to `sf_rag.attach()`; None where the headers carry none.
        This process's part ends with `end_session()`, like any other.
    """
    found = _carried(headers)
    members = dict(_members(found.get("baggage", "")))
    if _MEMBER not in members:
        return None
    session_id = unquote(members[_MEMBER].partition("=")[2].partition(";")[0].strip(), errors="replace")
    if not session_id or len(session_id) > _MAX_ID or not session_id.isprintable():
        return None
    runtime = sf_rag.cell.get()
    if runtime.settings.disabled:
        return session_id
    return runtime.join(session_id, _parent(found.get("traceparent", ""), session_id))


@partial(guarded, recover=_note_none)
def _carried(headers: Any) -> dict[str, str]:
    """Return the two headers that can carry a session, where they are there, each cut to what a header may hold."""
    found: dict[str, str] = {}
    pairs = cast("Mapping[Any, Any]", headers).items() if isinstance(headers, Mapping) else headers
    for name, value in islice(pairs, _MAX_HEADERS):
        carrier = _text(name).lower()
        if carrier in _CARRIERS:
            # One that comes twice is one list in two parts.
            before = f"{found[carrier]}," if carrier in found else ""
            found[carrier] = (before + _text(value)[:_MAX_BAGGAGE])[:_MAX_BAGGAGE]
    return found


def _text(value: object) -> str:
    if type(value) is bytes:
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""


def _members(baggage: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each member of a `baggage` header."""
    for text in baggage.split(",")[:_MAX_MEMBERS]:
        name = text.partition("=")[0].strip()
        if name:
            yield name, text.strip()


def _parent(traceparent: str, session_id: str) -> Parent | None:
    """Return the trace that the session is in elsewhere, and the span it hangs under; None if it is its own."""
    match = _TRACEPARENT.fullmatch(traceparent.strip())
    if match is None or traceparent.startswith("ff"):
        return None
    trace_id, span_id, flags = match.groups()
    above = "" if span_id == _ids.root_span_id_of(session_id) else span_id
    return Parent(trace_id, above, sampled=bool(int(flags, 16) & 1))
