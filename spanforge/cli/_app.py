"""The command line put together from its verbs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.main import get_command

from spanforge._version import __version__

__all__ = ["build"]

_VERBS: Final = (
    "demo", "sessions", "show", "tail", "verify", "export", "doctor", "ingest", "ask", "eval", "ui", "serve", "keys",
)  # fmt: skip


def build() -> Callable[..., object]:
    """Return the command line with every verb: to be called with `args`."""
    app = typer.Typer(
        name="spanforge",
        help="Trace Retrieval-Augmented Generation: everything arrives or is counted, and no text leaks.",
        callback=_top,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for verb in _VERBS:
        import_module(f"spanforge.cli.{verb}").register(app)
    command = get_command(app)
    _without_types(command)
    return command


def _without_types(command: Any) -> None:
    """Let the help of arguments say what they are by their names: typer would add `<list[str]>` and the like."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _nothing
    for verb in getattr(command, "commands", {}).values():
        _without_types(verb)


def _nothing(ctx: object) -> None:
    """Show no type."""


def _say_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"spanforge {__version__}\n")
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Print the version.")
    ] = False,
) -> None:
    pass
