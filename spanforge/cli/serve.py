"""`spanforge serve`: the RAG contract over HTTP."""

from __future__ import annotations

import errno
import signal
import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spanforge.cli._output import CliError, console, table, visible
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


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("serve", help="Serve the RAG contract and its pages over HTTP.")(_serve)


def _serve(
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
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve the bundled corpus from a temporary folder, with a key made for it.")
    ] = False,
) -> None:
    if demo and home is not None:
        raise CliError("--demo: works in a folder of its own; leave out --home")
    if home is not None:
        folder("--home", home)
    with _temporary(demo=demo) as temporary:
        chosen = {"host": host, "port": port, "home": temporary or home}
        _run(server_settings(chosen), demo=demo)


def _run(server: ServerSettings, *, demo: bool) -> None:
    try:
        import uvicorn  # noqa: PLC0415  absent without the extra
    except ImportError:
        uvicorn = None
    if uvicorn is None:
        raise MissingExtraError("The server", "server")
    from spanforge.server import create_app  # noqa: PLC0415  absent without the extra
    from spanforge.server.logs import configure_logging  # noqa: PLC0415  needed by servers alone
    from spanforge.server.viewing import events_file  # noqa: PLC0415  absent without the extra

    configured = settings()
    others = configured.sinks if "sinks" in configured.model_fields_set else ()
    app = create_app(server)
    _check_bind(app, server)
    configure_logging()
    sf_rag.configure(sinks=[f"sqlite:{events_file(server.home)}", *others])
    key = _furnish(app) if demo else ""
    with _listen(server) as listener:
        _print_where(server, listener.getsockname()[1], key, has_pages=app.state.close_viewer is not None)
        running = uvicorn.Server(
            uvicorn.Config(
                app,
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
    _print_ledger(sf_rag.shutdown(_FLUSH_S))


def _heard(_number: int, _frame: object) -> None:
    """Take note of a signal that has done its work."""


def _temporary(*, demo: bool) -> AbstractContextManager[str | None]:
    return TemporaryDirectory(prefix="spanforge-demo-") if demo else nullcontext()


def _check_bind(app: FastAPI, server: ServerSettings) -> None:
    """Refuse to stand where others can reach it with nobody let in: that is a mistake, and a waiting one."""
    from spanforge.server.limits import is_loopback  # noqa: PLC0415  absent without the extra

    if not is_loopback(server.host) and not server.oidc_issuer and not app.state.service.keys.any_valid():
        raise CliError(
            "--host: an address that others can reach needs a key or an issuer first; make one with "
            "`spanforge keys add`, or set SPANFORGE_SERVER_OIDC_ISSUER"
        )


def _furnish(app: FastAPI) -> str:
    from spanforge.server.demo import furnish  # noqa: PLC0415  absent without the extra

    return furnish(app.state.service)


def _listen(server: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    problem = ""
    try:
        return socket.create_server((server.host.strip("[]"), server.port), family=family, backlog=2048)
    except OSError as error:
        problem = (
            "--port: this port is taken or not allowed; name another one, or 0 for any that is free"
            if error.errno in {errno.EADDRINUSE, errno.EACCES}
            else "--host: this machine has no such address; 127.0.0.1 is always there"
        )
    raise CliError(problem)


def _print_where(server: ServerSettings, port: int, key: str, *, has_pages: bool) -> None:
    name = f"[{server.host.strip('[]')}]" if ":" in server.host else server.host
    url = f"http://{name}:{port}"
    lines: list[tuple[str, Any]] = [("API", f"{url}/api/rag"), ("OpenAPI", f"{url}/openapi.json")]
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


def _print_ledger(left: int) -> None:
    table(
        "ledger: accepted = delivered + failed + dropped + pending",
        ["sink", "#accepted", "#delivered", "#failed", "#dropped", "#pending"],
        [
            (name, ledger.accepted, ledger.delivered, ledger.failed, sum(ledger.dropped.values()), ledger.pending)
            for name, ledger in sf_rag.get_status().sinks.items()
        ],
    )
    if left:
        console.print(f"{left} deliveries were given up")
