"""`spanforge serve`: the RAG contract over HTTP."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spanforge.cli._home import BaseUrlOption, ModelOption
from spanforge.cli._listening import listen
from spanforge.cli._output import CliError, console, print_ledger, visible
from spanforge.cli._params import filled, folder, path
from spanforge.cli._settings import server_default, server_settings, settings
from spanforge.exceptions import MissingExtraError
from spanforge.sdk import ServerSettings, sf_rag

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fastapi import FastAPI

_DRAIN_S: Final = 10
"""Seconds that requests at hand get when the server is stopped."""
_FLUSH_S: Final = 10.0
_SWITCH_S: Final = 0.0002
"""Seconds a thread computes before another may, a part of Python's own: the thread of all connections gives way with
each write, and would wait so long to go on."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("serve", help="Serve the RAG contract and its pages over HTTP.")(_serve)


def _serve(  # noqa: PLR0917  typer makes the options from the signature
    host: Annotated[
        str | None,
        typer.Option(
            metavar="HOST", parser=filled("--host"), show_default=server_default("host"), help="Address to listen on."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", show_default=server_default("port"), help="Port to listen on; 0 takes a free one."
        ),
    ] = None,
    home: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=path("--home"),
            show_default=server_default("home"),
            help="Folder of everything the server keeps.",
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            show_default="SPANFORGE_SERVER_KEEP, else for ever",
            help="How long events, ended jobs and remembered answers are kept, as in 12h or 30d.",
        ),
    ] = None,
    model: ModelOption = "",
    base_url: BaseUrlOption = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve the bundled corpus from a temporary folder, with a key made for it.")
    ] = False,
) -> None:
    if demo and home is not None:
        raise CliError("--demo: works in a folder of its own; leave out --home")
    if home is not None:
        folder("--home", home)
    with _temporary(demo=demo) as temporary:
        chosen = {
            "host": host,
            "port": port,
            "home": temporary or home,
            "model": model or None,
            "base_url": base_url,
            "keep": keep,
        }
        _run(server_settings(chosen), demo=demo)


def _run(server: ServerSettings, *, demo: bool) -> None:
    try:
        import uvicorn  # noqa: PLC0415  absent without the extra
    except ImportError:
        uvicorn = None
    if uvicorn is None:
        raise MissingExtraError("The server", "server")
    from spanforge.server import create_app  # noqa: PLC0415  absent without the extra
    from spanforge.server.app import alone_in  # noqa: PLC0415  absent without the extra
    from spanforge.server.connections import most_connections, patient  # noqa: PLC0415  absent without the extra
    from spanforge.server.logs import configure_logging  # noqa: PLC0415  needed by servers alone

    # Whatever is written from here on, by whichever library, is its owner's alone.
    os.umask(0o077)
    configured = settings()
    others = configured.sinks if "sinks" in configured.model_fields_set else ()
    app = create_app(server)
    _check_bind(app, server)
    with alone_in(server.home):  # asked before anything is said, so that the answer is one sentence
        pass
    configure_logging()
    sys.setswitchinterval(_SWITCH_S)
    sf_rag.configure(sinks=[f"sqlite:{app.state.service.events}", *others])
    key = _furnish(app) if demo else ""
    most = most_connections(server)
    with listen(server.host, server.port) as listener:
        _print_where(server, listener.getsockname()[1], key, has_pages=app.state.close_viewer is not None)
        running = uvicorn.Server(
            uvicorn.Config(
                app,
                http=patient(server, most),  # pyright: ignore[reportArgumentType]  called to make each protocol
                # Accepted in one go before any of them can be turned away: as many must have descriptors.
                backlog=min(2048, most),
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_DRAIN_S,
            )
        )
        # It sends a signal that stopped it on to whoever listened before, which would end the process with the ledger
        # untold and the temporary folder left behind.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _heard)
        running.run(sockets=[listener])
    left = sf_rag.shutdown(_FLUSH_S)
    print_ledger(sf_rag.get_status().sinks, left)


def _heard(_number: int, _frame: object) -> None:
    """Take note of a signal that has done its work."""


def _temporary(*, demo: bool) -> AbstractContextManager[str | None]:
    return TemporaryDirectory(prefix="spanforge-demo-") if demo else nullcontext()


def _check_bind(app: FastAPI, server: ServerSettings) -> None:
    """Refuse to stand where others can reach it with nobody let in: that is a mistake, and a waiting one."""
    from spanforge.server.middleware.limits import is_loopback  # noqa: PLC0415  absent without the extra

    if not is_loopback(server.host) and not server.oidc_issuer and not app.state.service.keys.any_valid():
        raise CliError(
            "--host: an address that others can reach needs a key or an issuer first; make one with "
            "`spanforge keys add`, or set SPANFORGE_SERVER_OIDC_ISSUER"
        )


def _furnish(app: FastAPI) -> str:
    from spanforge.server.demo import furnish  # noqa: PLC0415  absent without the extra

    return furnish(app.state.service)


def _print_where(server: ServerSettings, port: int, key: str, *, has_pages: bool) -> None:
    name = f"[{server.host.strip('[]')}]" if ":" in server.host else server.host
    url = f"http://{name}:{port}"
    lines: list[tuple[str, Any]] = [("API", f"{url}/api/rag"), ("docs", f"{url}/docs")]
    if has_pages:
        lines.append(("pages", f"{url}/ui/"))
    lines.append(("folder", server.home))
    if key:
        lines.append(("key", f"{key}  (shown this once)"))
        headers = f"-H 'Authorization: Bearer {key}' -H 'Content-Type: application/json'"
        question = '{"query": "What is the capital of France?"}'
        # In one line, so that it can be copied as it stands.
        lines.append(("try", f"curl -s {url}/api/rag/query {headers} -d '{question}'"))
    for name, text in lines:
        console.print(f"{name:>8}  {visible(text)}", soft_wrap=True)
    sys.stdout.flush()
