"""The list of sessions, their latest events, and the search for a query that never leaves the request it came in."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from spanforge.namespaces.stages import WORDS
from spanforge.viewer.exports import as_csv, as_json
from spanforge.viewer.filters import COLUMNS, MARKS, RANGES, SORTS, STATUSES, Filter
from spanforge.viewer.names import choices, mentions
from spanforge.viewer.queries import ref_of, session_page, session_rows
from spanforge.viewer.shell import form_of, shell_of
from spanforge.viewer.stored_events import latest

__all__ = ["exported", "search", "sessions", "tail"]

_MOST_EXPORTED: Final = 10_000


def sessions(request: Request) -> Response:
    """Show a page of sessions; the address is the whole filter."""
    shell, wanted = shell_of(request), Filter.parse(request.query_params)
    org = shell.org(request)
    with shell.asking() as connection:
        found, names = session_page(connection, org, wanted), choices(connection, org)
        said = {
            column: mentions(connection, found.rows, kind, known)
            for column, kind, known in (("model", "model", names["model"]), ("tags", "tag", names["tag"]))
            if column in wanted.columns.split() and found.rows
        }
    return shell.page(
        request,
        "sessions.html",
        active="sessions",
        wanted=wanted,
        unfiltered=Filter(),
        found=found,
        names=names,
        said=said,
        columns=[one for one in COLUMNS if one != "organisation" or names["org"]],
        ranges=list(RANGES),
        sorts=SORTS,
        statuses=STATUSES,
        marks=MARKS,
        keyed=shell.hasher.algorithm != "sha256",
    )


def exported(request: Request) -> Response:
    """Give the list out, as its filter and its order make it, as CSV or JSON."""
    shell, wanted = shell_of(request), Filter.parse(request.query_params)
    with shell.asking() as connection:
        rows = session_rows(connection, shell.org(request), wanted, _MOST_EXPORTED)
    is_csv = request.url.path.endswith(".csv")
    content = as_csv(rows) if is_csv else as_json(rows)
    name = "sessions.csv" if is_csv else "sessions.json"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="text/csv" if is_csv else "application/json", headers=headers)


async def search(request: Request) -> Response:
    """Turn a posted query into its digest, and go to the address that has the digest alone."""
    shell, fields = shell_of(request), await form_of(request)
    shell.check_form(request, fields)
    text = fields.get("query", "")
    wanted = Filter(digest=shell.hasher.digest(text)) if text else Filter()
    return RedirectResponse(shell.links(request)("sessions", wanted.query()), 303)


def tail(request: Request) -> Response:
    """Show the latest events; the page's script fetches it again where there are new ones."""
    shell = shell_of(request)
    with shell.asking() as connection:
        events = latest(connection, shell.org(request))
    return shell.page(request, "tail.html", active="tail", events=events, words=WORDS, ref_of=ref_of)
