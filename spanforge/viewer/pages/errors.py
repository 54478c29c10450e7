"""What is shown where something cannot be."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from spanforge.viewer.shell import shell_of

__all__ = ["HANDLERS", "NOT_FOUND"]

NOT_FOUND: Final = "There is nothing here. The address may be wrong, or the session may not be in this store."
_TITLES: Final = {400: "Not understood", 403: "Refused", 404: "Not found", 409: "No record", 413: "Too long"}


def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    # The framework's own sentence for a path it does not know must not differ from ours for a session.
    detail = NOT_FOUND if status == 404 else error.detail if isinstance(error, HTTPException) else ""  # noqa: PLR2004
    shell = shell_of(request)
    shown = {"title": _TITLES.get(status, "Not possible"), "detail": detail}
    if status == 409:  # noqa: PLR2004  an export that cannot be made leads back to what was to be exported
        ref = request.path_params["ref"]
        shown["back"] = shell.links(request)(f"sessions/{quote(ref, safe='~')}", request.url.query)
    return shell.page(request, "error.html", status, **shown)


def _broken(request: Request, _: Exception) -> Response:
    return shell_of(request).page(
        request,
        "error.html",
        500,
        title="Something went wrong",
        detail="The page could not be made. The server's log says why; the stored events are not affected.",
    )


def _unreadable(_: Request, error: Exception) -> Response:
    """Say it in one sentence: every page in its frame asks the store, which cannot be."""
    code = getattr(error, "sqlite_errorname", type(error).__name__)
    return PlainTextResponse(f"The store cannot be read now ({code}): it is locked or damaged.\n", 503)


HANDLERS: Final[Mapping[Any, Any]] = {HTTPException: _refused, sqlite3.DatabaseError: _unreadable, 500: _broken}
