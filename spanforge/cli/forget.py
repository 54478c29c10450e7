"""`spanforge forget`: documents, or a whole data source, out of the index."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanforge.cli._home import (
    DEFAULT_HOME,
    HomeOption,
    SourceOption,
    UserOption,
    documents_of,
    open_pipeline,
    parse_user,
)
from spanforge.cli._output import CliError, console, print_json, visible
from spanforge.cli._params import JsonOption
from spanforge.reference.failures import PermissionDenied
from spanforge.reference.ingesting.loading import identity
from spanforge.reference.pipeline import DEFAULT_SOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("forget", help="Take documents, or a whole data source, out of the index.")(_forget)


def _forget(  # noqa: PLR0917  typer makes the options from the signature
    names: Annotated[
        list[str] | None, typer.Argument(metavar="DOCUMENT", help="Names as `documents` lists them, or their paths.")
    ] = None,
    source: SourceOption = DEFAULT_SOURCE,
    everything: Annotated[bool, typer.Option("--all", help="The whole data source.")] = False,
    home: HomeOption = DEFAULT_HOME,
    user: UserOption = "local",
    as_json: JsonOption = False,
) -> None:
    if bool(names) is everything:
        raise CliError("DOCUMENT: name documents, or give --all for the whole data source")
    who = parse_user(user)
    with open_pipeline(home) as pipeline:
        known = {one.document_id for one in documents_of(pipeline, source, who)}
        wanted = None if everything else _identities(names or (), known)
        denied = True
        gone = 0
        with suppress(PermissionDenied):
            gone = pipeline.delete(source, wanted, user=who)
            denied = False
    if denied:
        raise CliError("--source: you may not change this data source")
    count = len(known) if wanted is None else len(wanted)
    if as_json:
        print_json({"documents": count, "passages": gone})
    else:
        console.print(f"{count} documents with {gone} passages were forgotten")


def _identities(names: Sequence[str], known: set[str]) -> list[str]:
    """Return the documents that are named, by their own names, by their paths, or by the folder they stood in."""
    found: list[str] = []
    for name in names:
        path = identity(Path(name))
        named = [one for one in sorted(known) if one in {name, path} or one.startswith(f"{path.rstrip('/')}/")]
        if not named:
            raise CliError(f"DOCUMENT: not in the index: {visible(name)}")
        found += named
    return list(dict.fromkeys(found))
