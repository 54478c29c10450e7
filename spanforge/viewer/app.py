"""Puts the viewer together: an ASGI application over one store."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from spanforge._hashing import Hasher, utf8
from spanforge.sdk import Settings
from spanforge.viewer.documents import Documents
from spanforge.viewer.guards import LoopbackHost, OwnPosts, SafeAnswers
from spanforge.viewer.names import version
from spanforge.viewer.pages import access, ask, delivery, errors, overview, session, sessions
from spanforge.viewer.shell import Shell, shell_of
from spanforge.viewer.store import ViewedStore
from spanforge.viewer.visits import SignIn, Visits

__all__ = ["create_viewer"]

_STATIC: Final = Path(__file__).with_name("static")


def create_viewer(store: str | Path, *, sign_in: SignIn | None = None, documents: Documents | None = None) -> Starlette:
    """Return the viewer over a store, to be served by itself or mounted below a path.

    The store is read in the background from the first request on. `app.state.close()` ends that and deletes the
    scratch store, where there is one; a server that runs the viewer by itself does so at its end.

    Args:
        store: A database of the sqlite sink, a jsonl file, a folder or a pattern; it may come to be later.
        sign_in: Takes a credential and gives what it is good for, or None. Everything shown is its organisation's.
            Without it nobody signs in, everything is shown, and only requests that name this
            machine are answered: bind it to loopback.
        documents: Those behind the traces: to show passages, and to be asked.

    Raises:
        ConfigError: A setting cannot be used; queries are searched for with `hash_key`.
    """
    key = Settings.load().hash_key
    hasher = Hasher(None if key is None else utf8(key.get_secret_value()))
    viewed = ViewedStore(store)
    shell = Shell(viewed, hasher, None if sign_in is None else Visits(sign_in), documents)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        yield
        viewed.close()

    guards = [Middleware(SafeAnswers), Middleware(OwnPosts)]
    if shell.visits is None:
        guards.append(Middleware(LoopbackHost))
        doors: list[Route] = []
    else:
        guards.append(Middleware(access.SignedIn, visits=shell.visits))
        doors = [
            Route("/sign-in", access.sign_in, methods=["GET", "POST"]),
            Route("/sign-out", access.sign_out, methods=["POST"]),
        ]
    app = Starlette(
        routes=[
            Route("/", _home),
            Route("/sessions", sessions.sessions),
            Route("/sessions.csv", sessions.exported),
            Route("/sessions.json", sessions.exported),
            Route("/sessions/{ref}", session.session),
            Route("/sessions/{ref}/compare", session.compare),
            Route("/sessions/{ref}/export/{form}", session.export_session),
            Route("/search", sessions.search, methods=["POST"]),
            Route("/overview", overview.overview_page),
            Route("/delivery", delivery.delivery),
            Route("/tail", sessions.tail),
            Route("/live", _live),
            Route("/ask", ask.ask, methods=["GET", "POST"]),
            Route("/ask/feedback", ask.rate, methods=["POST"]),
            Route("/passages/{chunk:path}", ask.passage),
            *doors,
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        middleware=guards,
        exception_handlers=errors.HANDLERS,
        lifespan=lifespan,
    )
    app.state.shell = shell
    app.state.close = viewed.close
    return app


def _home(request: Request) -> Response:
    shell = shell_of(request)
    return RedirectResponse(shell.links(request)("sessions" if shell.looks(request) else "ask"), 303)


def _live(request: Request) -> Response:
    """Say whether there is anything new; small, because pages ask every few seconds."""
    shell = shell_of(request)
    with shell.asking() as connection:
        return JSONResponse(
            {"stamp": version(connection, shell.org(request)), "complete": shell.store.progress().complete}
        )
