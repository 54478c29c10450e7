"""`spanforge documents`: what stands in the index, and what of it was not read."""

from __future__ import annotations

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
from spanforge.cli._output import print_json, table
from spanforge.cli._params import JsonOption
from spanforge.reference.pipeline import DEFAULT_SOURCE


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("documents", help="List the documents in the index.")(_documents)


def _documents(
    source: SourceOption = DEFAULT_SOURCE,
    home: HomeOption = DEFAULT_HOME,
    user: UserOption = "local",
    as_json: JsonOption = False,
) -> None:
    with open_pipeline(home) as pipeline:
        known = documents_of(pipeline, source, parse_user(user))
    if as_json:
        print_json([{"document_id": one.document_id, "chunks": one.chunks, "warning": one.warning} for one in known])
        return
    rows = [(one.document_id, str(one.chunks), one.warning) for one in known]
    table(f"{len(rows)} documents in the index", ["document", "passages", "what is missing"], rows)
