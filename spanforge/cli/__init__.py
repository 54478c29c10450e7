"""The command line: one file for each verb. Errors are one sentence on stderr and exit code 2."""

from __future__ import annotations

import io
import sys

from spanforge._version import __version__
from spanforge.exceptions import MissingExtraError, SpanforgeError

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; those of the process without it.

    Returns:
        The exit code: 0, 1 where a check found something wrong, 2 for a wrong call.
    """
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:  # which needs no extra
        sys.stdout.write(f"spanforge {__version__}\n")
        return 0
    try:
        from spanforge.cli._app import build  # noqa: PLC0415  needs the extra
    except ImportError:
        sys.stderr.write(f"spanforge: {MissingExtraError('the command line', 'cli')}\n")
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A pipe that knows few characters gets escapes for the others, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        build()(args=arguments)
    except SpanforgeError as error:
        sys.stderr.write(f"spanforge: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"spanforge: {error.strerror or type(error).__name__}: {error.filename or ''}\n")
        return 2
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0
