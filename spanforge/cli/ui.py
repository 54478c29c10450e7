"""`spanforge ui`: stored sessions as pages to look at, on this machine."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanforge.cli._listening import listen
from spanforge.cli._output import CliError, console, visible
from spanforge.cli._params import FromOption, place
from spanforge.cli._params import path as path_of
from spanforge.cli._source import check_readable, path_from
from spanforge.exceptions import MissingExtraError
from spanforge.reader import is_url

if TYPE_CHECKING:
    from spanforge.viewer.documents import LocalDocuments

_HOST = "127.0.0.1"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ui", help="Look at stored sessions in a browser, on this machine only.")(_ui)


def _ui(
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", parser=place("PATH"), show_default=False, help="The same as --from.")
    ] = None,
    source: FromOption = None,
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=path_of("--index"),
            show_default=False,
            help="Folder of an index, as `spanforge ingest` makes it: chunks lead to their text.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Port on 127.0.0.1; 0 for any that is free.", min=0, max=65535)
    ] = 8765,
) -> None:
    if path is not None and source is not None:
        raise CliError("--from: says what PATH says; give one of the two")
    given = path if source is None else source
    store = path_from(given)
    if is_url(store):
        raise CliError("--from: the pages show what is on this machine; fetch the file first")
    if Path(store).is_file():
        check_readable(given)
    try:
        import uvicorn  # noqa: PLC0415  an extra
    except ImportError:
        raise MissingExtraError("`spanforge ui`", "ui") from None
    from spanforge.viewer import create_viewer  # noqa: PLC0415  needs the extra

    with closing(listen(_HOST, port)) as listening:
        app = create_viewer(store, documents=None if index is None else _documents(index))
        address = f"http://{_HOST}:{listening.getsockname()[1]}/"
        console.print(f"{visible(store)} at [bold]{address}[/]  (Ctrl+C ends it)")
        # Ids are parts of addresses, whatever their length.
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, h11_max_incomplete_event_size=1 << 20
        )
        server = uvicorn.Server(config)
        server.run(sockets=[listening])


def _documents(index: Path) -> LocalDocuments:
    from spanforge.cli._home import open_pipeline  # noqa: PLC0415  needs an extra
    from spanforge.viewer.documents import LocalDocuments  # noqa: PLC0415  needs an extra

    return LocalDocuments(open_pipeline(index, option="--index"))
