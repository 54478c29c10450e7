"""`spanforge ui`: stored sessions as pages to look at, on this machine."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from spanforge.cli._output import CliError, console, visible
from spanforge.cli._params import FromOption, place
from spanforge.cli._source import check_readable, path_from
from spanforge.exceptions import MissingExtraError

_HOST = "127.0.0.1"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ui", help="Look at stored sessions in a browser, on this machine only.")(_ui)


def _ui(
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", parser=place("PATH"), show_default=False, help="The same as --from.")
    ] = None,
    source: FromOption = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Port on 127.0.0.1; 0 for any that is free.", min=0, max=65535)
    ] = 8765,
) -> None:
    if path is not None and source is not None:
        raise CliError("--from: says what PATH says; give one of the two")
    given = path if source is None else source
    store = path_from(given)
    if Path(store).is_file():
        check_readable(given)
    try:
        import uvicorn  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingExtraError("`spanforge ui`", "ui") from None
    from spanforge.server.viewer import create_viewer  # noqa: PLC0415  needs the extra

    with closing(_bound(port)) as listening:
        app = create_viewer(store)
        address = f"http://{_HOST}:{listening.getsockname()[1]}/"
        console.print(f"{visible(store)} at [bold]{address}[/]  (Ctrl+C ends it)")
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, server_header=False))
        server.run(sockets=[listening])


def _bound(port: int) -> socket.socket:
    """Return a listening socket on the loopback interface.

    Raises:
        CliError: The port is taken.
    """
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    problem = ""
    try:
        listening.bind((_HOST, port))
        # Whoever opens the printed address at once waits a moment, and is not turned away.
        listening.listen()
    except OSError:
        listening.close()
        problem = "--port: this port is taken or not allowed; name another one, or 0 for any that is free"
    if problem:
        raise CliError(problem)
    return listening
