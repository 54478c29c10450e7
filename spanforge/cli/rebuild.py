"""`spanforge rebuild`: the sessions of any number of files, stitched together into one table."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from spanforge.cli._output import CliError, console
from spanforge.cli._params import path
from spanforge.cli._params import source as any_source
from spanforge.cli._source import account, rooted
from spanforge.exceptions import MissingExtraError

if TYPE_CHECKING:
    from spanforge.analysis.index import Manifest


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("rebuild", help="Put the sessions of many files together, in one Parquet file.")(_rebuild)


def _rebuild(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT", parser=any_source("INPUT"), help="A file, a folder, a glob or a store of events, or a URL."
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT.parquet", parser=path("OUT.parquet"), help="The table to write.")],
    engine: Annotated[str, typer.Option("--engine", metavar="ENGINE", help="duckdb or spark.")] = "duckdb",
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", show_default="local[*]", help="The Spark cluster.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep an index beside the input, so that it is read once.")
    ] = True,
) -> None:
    try:
        from spanforge.analysis.bulk import rebuild  # noqa: PLC0415  needs an extra
    except ImportError:
        raise MissingExtraError("`spanforge rebuild`", "spark" if engine == "spark" else "analysis") from None
    if not out.parent.is_dir():
        raise CliError("OUT.parquet: there is no such folder to write it to")
    with ExitStack() as stack:
        folder = rooted(source) if keep else None
        index = folder or Path(stack.enter_context(TemporaryDirectory()))
        done = rebuild(source, out, index, engine=engine, master=master)
    account(done.manifest.damaged, done.manifest.events, "INPUT")
    _report(done.manifest, done.sessions, done.open, out)


def _report(manifest: Manifest, sessions: int, still_open: int, out: Path) -> None:
    share = manifest.rest / max(1, manifest.events + sum(manifest.damaged.values()))
    console.print(
        f"wrote {sessions:,} sessions ({still_open:,} never ended) of {manifest.events:,} events to {out.name}; "
        f"{share:.1%} of the lines were read one by one"
    )
