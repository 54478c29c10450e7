"""Where the verbs that ask documents keep their index, and who asks."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spanforge.cli._output import CliError
from spanforge.cli._params import filled, folder, path
from spanforge.reference import Pipeline, RagFailure, User
from spanforge.reference.answering import open_answerer
from spanforge.reference.failures import GenerationFailed, PermissionDenied

if TYPE_CHECKING:
    from spanforge.reference.ingesting.catalog import DocumentRecord

DEFAULT_HOME: Final = Path("spanforge-index")
"""Beside the documents, not in a hidden place: whoever finds the folder can see what it is and delete it."""

HomeOption = Annotated[Path, typer.Option("--home", metavar="DIR", parser=path("--home"), help="Folder of the index.")]
SourceOption = Annotated[
    str, typer.Option("--source", metavar="NAME", parser=filled("--source"), help="Data source they belong to.")
]
UserOption = Annotated[
    str,
    typer.Option(
        "--as", metavar="USER", help="Who you are: USER, or USER@ORG, with +role:NAME and +team:NAME behind it."
    ),
]


ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        show_default="none: answers are quotations",
        help="Model that writes the answer, behind --base-url or its maker's own address.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        parser=filled("--base-url"),
        help="Server of the model, such as http://localhost:11434/v1.",
    ),
]


def open_pipeline(
    home: Path, *, create: bool = False, option: str = "--home", model: str = "", base_url: str | None = None
) -> Pipeline:
    """Open the index in a folder, which an option names, and the model that answers where one is named.

    Raises:
        CliError: There is no index, or one of the two cannot be opened.
    """
    folder(option, home)
    if not create and not (home / "catalog.sqlite").is_file():
        raise CliError(f"{option}: there is no index in this folder; make one with `spanforge ingest PATH`")
    if base_url and not model:
        raise CliError("--base-url: name the model as well, with --model NAME")
    problem = ""
    try:
        return Pipeline(home, answerer=open_answerer(model, base_url))
    except GenerationFailed as failure:
        problem = f"--model: {failure}"
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


def documents_of(pipeline: Pipeline, source: str, user: User) -> list[DocumentRecord]:
    """Return the documents of a data source.

    Raises:
        CliError: There is none of this name that the user may query.
    """
    with suppress(PermissionDenied):
        return pipeline.documents(source, user=user)
    raise CliError("--source: there is no data source of this name that you may query")
