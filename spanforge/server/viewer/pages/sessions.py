"""The list of sessions, and the search for a query that never leaves the request it came in."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from spanforge.server.viewer.filters import RANGES, SORTS, Filter
from spanforge.server.viewer.index.figures import STATUSES
from spanforge.server.viewer.queries import choices, session_page
from spanforge.server.viewer.shell import form_of, shell_of

__all__ = ["search", "sessions"]


def sessions(request: Request) -> Response:
    """Show a page of sessions; the address is the whole filter."""
    shell, wanted = shell_of(request), Filter.parse(request.query_params)
    org = shell.org(request)
    with shell.asking() as connection:
        found, names = session_page(connection, org, wanted), choices(connection, org)
    return shell.page(
        request,
        "sessions.html",
        active="sessions",
        wanted=wanted,
        found=found,
        names=names,
        ranges=list(RANGES),
        sorts=SORTS,
        statuses=STATUSES,
        keyed=shell.hasher.algorithm != "sha256",
    )


async def search(request: Request) -> Response:
    """Turn a posted query into its digest, and go to the address that has the digest alone."""
    shell, fields = shell_of(request), await form_of(request)
    shell.check_form(request, fields)
    text = fields.get("query", "")
    wanted = Filter(digest=shell.hasher.digest(text)) if text else Filter()
    return RedirectResponse(shell.links(request)("sessions", wanted.query()), 303)
