"""Options and arguments that more than one verb takes, each declared once: one name for one thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from spanforge.cli._output import CliError

__all__ = [
    "FromOption",
    "JsonOption",
    "SessionArgument",
    "SessionsArgument",
    "filled",
    "folder",
    "path",
    "place",
]


def filled(name: str) -> Callable[[object], str]:
    """Return what reads an argument that must not be empty, as an unset variable of a shell leaves it.

    Args:
        name: The option or argument, for the error.
    """

    def read(given: object) -> str:
        text = str(given)
        if not text.strip():
            raise CliError(
                f"{name}: it is empty; " + ("give a value, or leave it out" if name[0] == "-" else "fill it in")
            )
        return text

    return read


def place(name: str) -> Callable[[object], str]:
    """Return what reads a path, or a pattern of paths, of this machine."""

    def read(given: object) -> str:
        text = filled(name)(given)
        if "://" in text:
            raise CliError(f"{name}: it takes a path on this machine, not an address; fetch the file first")
        return text

    return read


def path(name: str) -> Callable[[object], Path]:
    """Return what reads the path of one file or folder."""
    return lambda given: Path(place(name)(given))


def folder(name: str, given: Path) -> Path:
    """Return the path of a folder that is there or may be made.

    Raises:
        CliError: Something else stands there.
    """
    if given.exists() and not given.is_dir():
        raise CliError(f"{name}: a file stands there; name a folder")
    return given


FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        parser=place("--from"),
        metavar="PATH",
        show_default="first jsonl: or sqlite: sink of SPANFORGE_SINKS",
        help="Where to read events: a file, a folder, a glob or a store.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_SESSION = "Its id, or as much of its beginning or end as tells it apart."
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", parser=filled("SESSION"), help=_SESSION)]
SessionsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SESSION", parser=filled("SESSION"), show_default=False, help=f"{_SESSION} All without any."
    ),
]
