"""The viewer under `/ui`, where its extra is installed: the same credentials, and what the role lets them see."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse

from spanforge.exceptions import MissingExtraError
from spanforge.server.auth.permissions import VIEWERS, may
from spanforge.server.documents import ServedDocuments
from spanforge.server.problems import Problem
from spanforge.viewer.visits import COOKIE, Guest, Visits

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI, Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from spanforge.server.service import Service

PATH: Final = "/ui"
SIGN_IN: Final = f"{PATH}/sign-in"
"""Where browsers post a credential."""


async def _to_the_pages(_: Request) -> Response:
    """Lead to the pages from the address that people type, wherever the server itself is mounted."""
    return RedirectResponse(f".{PATH}/")


async def _to_the_description(_: Request) -> Response:
    """Lead to what there is where there are no pages."""
    return RedirectResponse("./docs")


class _Throttled:
    """Counts the pages somebody looks at with what is asked for his organisation."""

    def __init__(self, app: ASGIApp, visits: Visits, service: Service) -> None:
        self._app = app
        self._visits = visits
        self._throttle = service.throttle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        visit = await self._visits.find(Request(scope).cookies.get(COOKIE)) if scope["type"] == "http" else None
        if visit is None or "/static/" in scope["path"]:
            await self._app(scope, receive, send)
            return
        self._throttle.take(visit.org)
        # What asks the documents is counted where it is done.
        asks = scope["path"].removeprefix(scope.get("root_path", "")).startswith(("/ask", "/passages/"))
        with nullcontext() if asks else self._throttle.working(visit.org):
            await self._app(scope, receive, send)


def mount_viewer(app: FastAPI, service: Service) -> Callable[[], None] | None:
    """Mount the viewer and return what ends it; None where its extra is not installed."""

    async def sign_in(credential: str) -> Guest | None:
        try:
            user = await service.authenticator.judge(credential)
        except Problem:
            return None
        if user is None:
            return None
        roles = user.roles
        guest = Guest(user.org_id, not roles.isdisjoint(VIEWERS), may(roles, "POST", "/api/rag/query"))
        return guest if guest.looks or guest.asks else None

    with suppress(MissingExtraError):
        from spanforge.viewer import create_viewer  # noqa: PLC0415  absent without its extra

        events = service.events
        viewer = create_viewer(events, sign_in=sign_in, documents=ServedDocuments(service, events))
        for place in ("/", PATH):
            app.add_route(place, _to_the_pages)
        app.mount(PATH, _Throttled(viewer, viewer.state.shell.visits, service))
        # What is mounted is not told when the server ends.
        return viewer.state.close
    app.add_route("/", _to_the_description)
    return None
