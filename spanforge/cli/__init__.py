"""The command line: one file for each verb. Errors are one sentence on stderr and exit code 2."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Final

from spanforge._version import __version__
from spanforge.exceptions import MissingExtraError, SpanforgeError

__all__ = ["main"]

_VERBS: Final = (
    "demo", "sessions", "show", "tail", "verify", "export", "doctor", "ingest", "ask", "eval", "ui", "serve", "keys",
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; those of the process without it.

    Returns:
        The exit code: 0, 1 where a check found something wrong, 2 for a wrong call.
    """
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        sys.stdout.write(f"spanforge {__version__}\n")
        return 0
    try:
        import typer  # noqa: PLC0415  absent without the extra
    except ImportError:
        sys.stderr.write(f"spanforge: {MissingExtraError('the command line', 'cli')}\n")
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A pipe that knows few characters gets escapes for the others, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    app = typer.Typer(
        name="spanforge",
        help="Trace Retrieval-Augmented Generation: everything arrives or is counted, and no text leaks.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for verb in _VERBS:
        import_module(f"spanforge.cli.{verb}").register(app)
    try:
        app(args=arguments)
    except SpanforgeError as error:
        sys.stderr.write(f"spanforge: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"spanforge: {error.strerror or type(error).__name__}: {error.filename or ''}\n")
        return 2
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
