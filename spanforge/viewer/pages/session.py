"""One session: its page, and its exports."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from spanforge.namespaces.event import Event
from spanforge.standards.transparency import TransparencyError
from spanforge.standards.tree.session import Session
from spanforge.viewer.comparison import comparison
from spanforge.viewer.detail import MOST_EVENTS, Detail, detail
from spanforge.viewer.exports import FORMS, export
from spanforge.viewer.filters import Filter
from spanforge.viewer.pages.errors import NOT_FOUND
from spanforge.viewer.queries import SessionRow, find, neighbours, session_rows, turns
from spanforge.viewer.shell import Shell, shell_of
from spanforge.viewer.stored_events import events_of

__all__ = ["compare", "export_session", "session"]

_MOST_RAW: Final = 100


def session(request: Request) -> Response:
    """Show a session; where several organisations use its id, the list of them."""
    shell = shell_of(request)
    with shell.asking() as connection:
        found = _found(shell, request, connection)
        if len(found) > 1:
            links = shell.links(request)
            return RedirectResponse(links("sessions", f"id={found[0].ref}"), 303)
        [row] = found
        events = events_of(connection, row, MOST_EVENTS)
        before, after = neighbours(connection, row)
        conversation = turns(connection, row)
        alike = _alike(connection, shell.org(request), row, events)
    if not events:
        return shell.page(
            request,
            "error.html",
            410,
            title="No longer stored",
            detail="This session is known, but its events are gone from the store: deleted, or replaced.",
        )
    return shell.page(
        request,
        "session.html",
        active="sessions",
        row=row,
        before=before,
        after=after,
        conversation=conversation,
        alike=alike,
        raw=[json.dumps(event.to_dict(), indent=2) for event in events[:_MOST_RAW]],
        shown=detail(row.session_id, events),
        gone=max(0, min(row.events, MOST_EVENTS) - len(events)),
        beyond=max(0, row.events - MOST_EVENTS),
    )


def compare(request: Request) -> Response:
    """Show a session beside another, whose id the address gives as `with`."""
    shell, other = shell_of(request), request.query_params.get("with", "").strip()
    shown: list[tuple[SessionRow, Detail]] = []
    with shell.asking() as connection:
        for ref in (request.path_params["ref"], other):
            # An id that several organisations use stands for the one of the session beside which it is put.
            org = shown[0][0].org if shown else request.query_params.get("org")
            row = next(iter(find(connection, shell.org(request), ref, org)), None)
            events = [] if row is None else events_of(connection, row, MOST_EVENTS)
            if row is None or not events:
                raise HTTPException(404, NOT_FOUND)
            shown.append((row, detail(row.session_id, events)))
    (_, first), (_, second) = shown
    return shell.page(request, "compare.html", active="sessions", shown=shown, comparison=comparison(first, second))


def export_session(request: Request) -> Response:
    """Give a session out in the form of another standard."""
    shell, form = shell_of(request), request.path_params["form"]
    with shell.asking() as connection:
        found = _found(shell, request, connection)
        if len(found) > 1 or form not in FORMS:
            raise HTTPException(404, NOT_FOUND)
        events = events_of(connection, found[0], found[0].events)
    if not events:
        raise HTTPException(404, NOT_FOUND)
    problem = ""
    try:
        name, content, media_type = export(Session(events), form)
    except TransparencyError as error:
        problem = str(error)
    else:
        return Response(
            content, media_type=media_type, headers={"content-disposition": f'attachment; filename="{name}"'}
        )
    raise HTTPException(409, f"{problem[:1].upper()}{problem[1:]}.")


def _alike(
    connection: sqlite3.Connection, org: str | None, row: SessionRow, events: Sequence[Event]
) -> SessionRow | None:
    """Return the latest other session in which the same was asked."""
    digest = next((event.payload.get("query_hash") for event in events if event.payload.get("query_hash")), None)
    if not isinstance(digest, str):
        return None
    same = session_rows(connection, org, Filter(digest=digest, org=row.org), 2)
    return next((one for one in same if one != row), None)


def _found(shell: Shell, request: Request, connection: sqlite3.Connection) -> list[SessionRow]:
    found = find(connection, shell.org(request), request.path_params["ref"], request.query_params.get("org"))
    if not found:
        raise HTTPException(404, NOT_FOUND)
    return found
