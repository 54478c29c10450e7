"""One session: its page, and its exports."""

from __future__ import annotations

import sqlite3

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from spanforge.conventions.session import Session
from spanforge.conventions.transparency import TransparencyError
from spanforge.namespaces.event import Event
from spanforge.server.viewer.detail import MOST_EVENTS, detail
from spanforge.server.viewer.exports import FORMS, export
from spanforge.server.viewer.pages.errors import NOT_FOUND
from spanforge.server.viewer.queries import SessionRow, find, stored_events
from spanforge.server.viewer.shell import Shell, shell_of

__all__ = ["export_session", "session"]


def session(request: Request) -> Response:
    """Show a session; where several organisations use its id, the list of them."""
    shell = shell_of(request)
    with shell.asking() as connection:
        found = _found(shell, request, connection)
        if len(found) > 1:
            links = shell.links(request)
            return RedirectResponse(links("sessions", f"id={found[0].ref}"), 303)
        [row] = found
        events = _events(shell, connection, row, MOST_EVENTS)
    if not events:
        return shell.page(
            request,
            "error.html",
            410,
            title="No longer stored",
            detail="The index knows this session, but its events are gone from the store: deleted, or replaced.",
        )
    return shell.page(
        request,
        "session.html",
        active="sessions",
        row=row,
        shown=detail(row.session_id, events),
        gone=max(0, min(row.events, MOST_EVENTS) - len(events)),
        beyond=max(0, row.events - MOST_EVENTS),
    )


def export_session(request: Request) -> Response:
    """Give a session out in the form of another standard."""
    shell, form = shell_of(request), request.path_params["form"]
    with shell.asking() as connection:
        found = _found(shell, request, connection)
        if len(found) > 1 or form not in FORMS:
            raise HTTPException(404, NOT_FOUND)
        events = _events(shell, connection, found[0], found[0].events)
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


def _found(shell: Shell, request: Request, connection: sqlite3.Connection) -> list[SessionRow]:
    found = find(connection, shell.org(request), request.path_params["ref"], request.query_params.get("org"))
    if not found:
        raise HTTPException(404, NOT_FOUND)
    return found


def _events(shell: Shell, connection: sqlite3.Connection, row: SessionRow, limit: int) -> list[Event]:
    return shell.index.events_of(stored_events(connection, row.key, limit), row.org)
