"""The command line put together from its verbs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.main import get_command

from spanforge._version import __version__
from spanforge.exceptions import MissingExtraError

__all__ = ["build"]

_VERBS: Final = {
    "demo": "demo",
    "sessions": "cli",
    "show": "cli",
    "tail": "cli",
    "verify": "cli",
    "prune": "cli",
    "report": "ui",
    "feedback": "ui",
    "check": "cli",
    "watch": "cli",
    "rebuild": "analysis",
    "export": "cli",
    "read-record": "cli",
    "doctor": "cli",
    "ingest": "demo",
    "documents": "demo",
    "sources": "demo",
    "forget": "demo",
    "ask": "demo",
    "eval": "demo",
    "tune": "demo",
    "ui": "server",
    "serve": "server",
    "keys": "server",
}
"""Each verb, and the extra that brings what it needs."""


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
    for verb, extra in _VERBS.items():
        try:
            register = import_module(f"spanforge.cli.{verb.replace('-', '_')}").register
        except ImportError as error:
            if not isinstance(error, MissingExtraError) and (error.name or "spanforge").startswith("spanforge"):
                raise
            _register_absent(app, verb, extra)
        else:
            register(app)
    command = get_command(app)
    _without_types(command)
    return command


def _register_absent(app: typer.Typer, verb: str, extra: str) -> None:
    """Add a verb whose packages are not installed: it stands in the list, and says what would bring them."""

    def absent() -> None:
        raise MissingExtraError(f"`spanforge {verb}`", extra)

    whatever = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(verb, help=f"Needs the '{extra}' extra.", context_settings=whatever, add_help_option=False)(absent)


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
