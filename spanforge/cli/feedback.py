"""`spanforge feedback worst`: what a human should read, and what it has in common."""

from __future__ import annotations

from typing import Annotated

import typer

from spanforge.cli._output import CliError, console, print_json, table, visible
from spanforge.cli._params import FromOption, InputArgument, JsonOption, one_of
from spanforge.cli._source import figures_path
from spanforge.viewer import Filter
from spanforge.viewer.shown import amount, moment, percent
from spanforge.viewer.worst import Worst, worst


def register(app: typer.Typer) -> None:
    """Add the verb and its subject."""
    group = typer.Typer(help="What people thought of answers, and what to do about it.", no_args_is_help=True)
    group.command(
        "worst", help="List the sessions that a human should read: not helpful, poorly grounded, or escalated."
    )(_worst)
    app.add_typer(group, name="feedback")


def _worst(
    source: InputArgument = None,
    given: FromOption = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many to list.", min=1)] = 20,
    as_json: JsonOption = False,
) -> None:
    store = figures_path(one_of(source, given))
    made = worst(store, Filter(), limit)
    if not made.progress.exists and not store.is_file():
        raise CliError(f"INPUT: nothing is stored there: {visible(store.name)}")
    if as_json:
        print_json(made.as_data())
    else:
        _show(made)


def _show(made: Worst) -> None:
    table(
        f"{amount(made.found)} of {amount(made.sessions)} sessions are worth a look",
        ["session", "began", "retriever", "why"],
        [(row.session_id, moment(row.started), row.retriever, ", ".join(row.reasons)) for row in made.rows],
    )
    if not made.shared:
        console.print("\nThey share nothing that chance alone would not bring together")
        return
    table(
        "\nWhat they share",
        ["", "name", "#of them", "#of all", "#lift"],
        [
            (
                one.kind,
                one.name,
                percent(one.worst, made.found),
                percent(one.sessions, made.sessions),
                f"{one.lift:.1f}",
            )
            for one in made.shared
        ],
    )
