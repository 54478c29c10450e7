"""`spanforge sources`: the data sources one may query."""

from __future__ import annotations

import typer

from spanforge.cli._home import DEFAULT_HOME, HomeOption, UserOption, open_pipeline, parse_user
from spanforge.cli._output import print_json, table, visible
from spanforge.cli._params import JsonOption


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sources", help="List the data sources that you may query.")(_sources)


def _sources(home: HomeOption = DEFAULT_HOME, user: UserOption = "local", as_json: JsonOption = False) -> None:
    who = parse_user(user)
    with open_pipeline(home) as pipeline:
        found = [(one, pipeline.documents(one.data_source_id, user=who)) for one in pipeline.sources(who)]
    if as_json:
        print_json([{**one.model_dump(mode="json"), "documents": len(documents)} for one, documents in found])
        return
    rows = [
        (visible(one.data_source_id), one.visibility.value, visible(one.owner_id), str(len(documents)))
        for one, documents in found
    ]
    table(f"{len(rows)} data sources", ["name", "visible to", "owner", "documents"], rows)
