"""Where the verbs that ask documents keep their index, and who asks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from spanforge.cli._output import CliError
from spanforge.cli._params import folder, path
from spanforge.reference import Pipeline, RagFailure, User

DEFAULT_HOME: Final = Path("spanforge-index")
"""Beside the documents, not in a hidden place: whoever finds the folder can see what it is and delete it."""

HomeOption = Annotated[Path, typer.Option("--home", metavar="DIR", parser=path("--home"), help="Folder of the index.")]
UserOption = Annotated[
    str,
    typer.Option(
        "--as", metavar="USER", help="Who you are: USER, or USER@ORG, with +role:NAME and +team:NAME behind it."
    ),
]


def open_pipeline(home: Path, *, create: bool = False) -> Pipeline:
    """Open the index in a folder.

    Raises:
        CliError: There is none, or it cannot be opened.
    """
    folder("--home", home)
    if not create and not (home / "catalog.sqlite").is_file():
        raise CliError("--home: there is no index in this folder; make one with `spanforge ingest PATH`")
    problem = ""
    try:
        return Pipeline(home)
    except RagFailure as failure:
        problem = str(failure)
    raise CliError(problem)


def parse_user(text: str) -> User:
    """Read who asks, as in ``ann@north+role:auditor+team:tides``.

    Raises:
        CliError: It cannot be read.
    """
    name, *marks = text.split("+")
    user, _, org = name.partition("@")
    roles = frozenset(mark[5:] for mark in marks if mark.startswith("role:"))
    teams = frozenset(mark[5:] for mark in marks if mark.startswith("team:"))
    if not user or len(roles) + len(teams) != len(marks) or "" in roles | teams:
        raise CliError("--as: write USER or USER@ORG, with +role:NAME or +team:NAME behind it")
    return User(user_id=user, org_id=org or "local", roles=roles, teams=teams)
