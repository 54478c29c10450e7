"""The viewer under `/ui`, where its extra is installed: the same credentials, and what the role lets them see."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse

from spanforge.exceptions import MissingExtraError
from spanforge.server.permissions import VIEWERS
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fastapi import FastAPI, Request, Response

    from spanforge.server.service import Service

PATH: Final = "/ui"
SIGN_IN: Final = f"{PATH}/sign-in"
"""Where browsers post a credential."""
_EVENTS: Final = "events.sqlite"


def events_file(home: Path) -> Path:
    """Return where the server's own events are kept, for the viewer to read."""
    return home / _EVENTS


async def _to_the_pages(_: Request) -> Response:
    """Lead to the pages from the address that people type, wherever the server itself is mounted."""
    return RedirectResponse(f".{PATH}/")


def mount_viewer(app: FastAPI, service: Service) -> Callable[[], None] | None:
    """Mount the viewer and return what ends it; None where its extra is not installed."""

    async def sign_in(credential: str) -> str | None:
        try:
            principal = await service.authenticator.judge(credential)
        except Problem:
            return None
        if principal is None or principal.user.roles.isdisjoint(VIEWERS):
            return None
        return principal.org_id

    with suppress(MissingExtraError):
        from spanforge.server.viewer import create_viewer  # noqa: PLC0415  absent without its extra

        viewer = create_viewer(events_file(service.settings.home), sign_in=sign_in)
        app.add_route(PATH, _to_the_pages)
        app.mount(PATH, viewer)
        # What is mounted is not told when the server ends.
        return viewer.state.close
    return None
