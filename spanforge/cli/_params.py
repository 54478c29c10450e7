"""Options and arguments that more than one verb takes, each declared once: one name for one thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from spanforge.cli._output import CliError
from spanforge.reader import is_url

__all__ = [
    "FromOption",
    "InputArgument",
    "JsonOption",
    "KeyFileOption",
    "PolicyOption",
    "PricesOption",
    "RetrieverOption",
    "SessionArgument",
    "SessionsArgument",
    "SinceOption",
    "StatusOption",
    "UntilOption",
    "filled",
    "folder",
    "one_of",
    "path",
    "place",
    "source",
]


_STATUSES = ("ok", "partial", "error")


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


def source(name: str) -> Callable[[object], str]:
    """Return what reads a path, or a pattern of paths, of this machine or of an object store."""

    def read(given: object) -> str:
        text = filled(name)(given)
        if "\0" in text:
            raise CliError(f"{name}: no path has a NUL in it")
        if text.startswith(("http://", "https://")):
            raise CliError(
                f"{name}: it takes a path or an object store's URL, not an address of the web; fetch the file"
            )
        return text

    return read


def place(name: str) -> Callable[[object], str]:
    """Return what reads a path, or a pattern of paths, of this machine."""

    def read(given: object) -> str:
        text = source(name)(given)
        if is_url(text):
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


def one_of(argument: str | None, option: str | None) -> str | None:
    """Return where to read from, which INPUT or --from may say."""
    if argument is not None and option is not None:
        raise CliError("--from: says what INPUT says; give one of the two")
    return option if argument is None else argument


FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        parser=source("--from"),
        metavar="PATH",
        show_default="first jsonl: or sqlite: sink of SPANFORGE_SINKS",
        help="Where to read events: a file, a folder, a glob or a store, here or behind a URL.",
    ),
]
InputArgument = Annotated[
    str | None,
    typer.Argument(metavar="INPUT", parser=source("INPUT"), show_default=False, help="The same as --from."),
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=path("--key-file"),
        show_default="the key in SPANFORGE_SIGNING_KEY",
        help="File that holds the signing key.",
    ),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", parser=path("--policy"), show_default="the service levels", help="What to ask, as TOML."
    ),
]
PricesOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        parser=filled("--prices"),
        show_default=False,
        help="Prices for generations that do not say their cost: TOML, or genai-prices for the public lists.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _status(given: object) -> str:
    if given not in _STATUSES:
        raise CliError(f"--status: use one of {', '.join(_STATUSES)}")
    return str(given)


StatusOption = Annotated[
    str | None,
    typer.Option("--status", parser=_status, metavar="STATUS", help="Only sessions that are ok, partial or error."),
]
RetrieverOption = Annotated[
    str | None, typer.Option("--retriever", metavar="NAME", help="Only sessions of this retriever.")
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only sessions begun then or later, UTC.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only sessions begun before then, UTC.")
]

_SESSION = "Its id, or as much of its beginning or end as tells it apart."
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", parser=filled("SESSION"), help=_SESSION)]
SessionsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SESSION", parser=filled("SESSION"), show_default=False, help=f"{_SESSION} All without any."
    ),
]
