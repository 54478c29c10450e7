"""`spanforge show SESSION`: one session's stages, chunks and summary."""

from __future__ import annotations

import typer

from spanforge.cli._output import print_json
from spanforge.cli._params import FromOption, JsonOption, SessionArgument
from spanforge.cli._source import session_from
from spanforge.cli._timeline import print_timeline


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("show", help="Show one stored session: its stages, its chunks, its summary.")(_show)


def _show(
    session_id: SessionArgument,
    source: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    session = session_from(source, session_id)
    if as_json:
        print_json({"summary": session.summary.to_dict(), "events": [event.to_dict() for event in session.events]})
    else:
        print_timeline(session)
