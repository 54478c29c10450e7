"""The application: settings in, ASGI out."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from filelock import FileLock, Timeout
from starlette.exceptions import HTTPException

from spanforge._hashing import Hasher, utf8
from spanforge._version import __version__
from spanforge.exceptions import ConfigError
from spanforge.reference.ingesting.fair_queue import FairQueue
from spanforge.sdk import ServerSettings, Settings, sf_rag
from spanforge.server.auth.credentials import WrongCredentials
from spanforge.server.auth.identity import Authenticator
from spanforge.server.auth.jwks import key_set
from spanforge.server.auth.keys import KEYS_FILE, KeyStore
from spanforge.server.auth.permissions import methods_of
from spanforge.server.auth.tokens import TokenVerifier
from spanforge.server.ingest.jobs import JobRunner
from spanforge.server.keeping import keep_for
from spanforge.server.middleware.limits import LOOPBACK_NAMES, BodyLimit, HostCheck, is_loopback
from spanforge.server.middleware.requests import Requests
from spanforge.server.middleware.throttle import Throttle
from spanforge.server.openapi import describe
from spanforge.server.problems import Problem, answer
from spanforge.server.routes import ingestion, operations, questions, sessions
from spanforge.server.routes import sources as source_routes
from spanforge.server.service import Service
from spanforge.server.tenants import Tenants, pipeline_maker
from spanforge.server.viewing import SIGN_IN, mount_viewer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from spanforge.reference import Pipeline

_BY_STATUS: Final = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 413: "TOO_LARGE", 415: "UNSUPPORTED_MEDIA_TYPE"}
ROUTERS: Final = (ingestion.router, source_routes.router, questions.router, sessions.router, operations.router)
_FLUSH_S: Final = 5.0
_ALONE_AFTER_S: Final = 10.0
"""Seconds after which an organisation that nobody else asks beside is given every thread."""


def create_app(
    settings: ServerSettings | None = None, make_pipeline: Callable[[Path], Pipeline] | None = None
) -> FastAPI:
    """Return the HTTP API over a folder.

    Args:
        settings: What the server is told; from the environment where left out.
        make_pipeline: Makes the pipeline of one organisation in the folder given, for answerers, rerankers or models
            of your own; the bundled parts where left out.

    Raises:
        ConfigError: A setting cannot be used.
        OSError: The folder cannot be made.
    """
    settings = settings or ServerSettings.load()
    # Bundled parts compute: more of them at once than there are processors would only be in each other's way. Whoever
    # asks a model waits for it most of the time, and of an application's own pipelines nothing is known.
    waits = make_pipeline is not None or settings.model
    threads = settings.max_concurrent if waits else max(2, os.cpu_count() or 1)
    service = _service(settings, make_pipeline or pipeline_maker(settings), threads)
    names = settings.allowed_hosts or (LOOPBACK_NAMES if is_loopback(settings.host) else frozenset())
    app = FastAPI(
        title="spanforge",
        version=__version__,
        summary="The RAG contract over HTTP",
        lifespan=_lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    app.state.warming = None
    # Made once: it takes tens of milliseconds, and is the same for the server's life.
    app.state.description = cache(lambda: json.dumps(describe(app, service.tenants.modes())).encode())
    for router in ROUTERS:
        app.include_router(router)
    app.state.close_viewer = mount_viewer(app, service)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _internal_problem)
    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(WrongCredentials, per_minute=settings.wrong_credentials_per_minute, sign_in=SIGN_IN)
    app.add_middleware(HostCheck, names=names)
    app.add_middleware(Requests)
    return app


def _service(settings: ServerSettings, make: Callable[[Path], Pipeline], threads: int) -> Service:
    keys = KeyStore(settings.home / KEYS_FILE)
    verifier = TokenVerifier(settings, key_set(settings.oidc_jwks)) if settings.oidc_issuer else None
    tenants = Tenants(settings.home, make, settings.open_orgs, _hasher())
    return Service(
        settings=settings,
        keys=keys,
        authenticator=Authenticator(keys, verifier),
        tenants=tenants,
        jobs=JobRunner(tenants, settings),
        throttle=_throttle(settings),
        uploads=_throttle(settings),
        pool=FairQueue(threads, "spanforge-work", _ALONE_AFTER_S),
    )


def _hasher() -> Hasher:
    """Return what makes digests of organisations' ids, keyed where those of questions are."""
    key = Settings.load().hash_key
    return Hasher(None if key is None else utf8(key.get_secret_value()))


def _throttle(settings: ServerSettings) -> Throttle:
    return Throttle(
        per_minute=settings.requests_per_minute,
        burst=settings.burst,
        at_once=settings.max_concurrent,
        at_once_per_org=settings.max_concurrent_per_org,
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    service: Service = app.state.service
    with alone_in(service.settings.home):
        service.tenants.upgrade()
        service.jobs.resume()
        # While nobody asks yet: libraries and the embedding model are loaded.
        warming = app.state.warming = asyncio.create_task(asyncio.to_thread(service.tenants.modes))
        keeping = asyncio.create_task(_keep(service))
        yield
        keeping.cancel()
        if app.state.close_viewer is not None:
            app.state.close_viewer()
        # Whatever came of it, those who ask get to know it for themselves.
        await asyncio.gather(warming, keeping, return_exceptions=True)
        service.close()
        sf_rag.flush(_FLUSH_S)


async def _keep(service: Service) -> None:
    if service.settings.keep_s is not None:
        await keep_for(service.events, service.tenants, service.settings.keep_s)


def alone_in(home: Path) -> FileLock:
    """Take the folder for this process: two servers would take up each other's jobs.

    Raises:
        ConfigError: Another server works in it.
    """
    lock = FileLock(home / "server.lock", timeout=0)
    taken = False
    try:
        lock.acquire()
    except Timeout:
        taken = True
    if taken:
        raise ConfigError("home: another server works in this folder; stop it, or give this one another")
    return lock


def _http_problem(request: Request, error: Exception) -> Response:
    """Answer what the routing refuses."""
    status = error.status_code if isinstance(error, HTTPException) else 400
    headers: dict[str, str] = {}
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(methods_of(request.url.path))
    return answer(Problem(_BY_STATUS.get(status, "BAD_REQUEST"), headers=headers), request.state.request_id)


def _invalid(request: Request, error: Exception) -> Response:
    """Answer what FastAPI refuses, without its words: they repeat the value."""
    places: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    fields = tuple(str(place["loc"][-1]) for place in places)
    return answer(Problem("INVALID_INPUT", fields=fields), request.state.request_id)


def _internal_problem(request: Request, _: Exception) -> Response:
    return answer(Problem("INTERNAL_ERROR"), request.state.request_id)
