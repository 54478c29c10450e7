"""What the verbs print with: tables for people, JSON for programs, and how numbers and times are written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spanforge.exceptions import SpanforgeError

if TYPE_CHECKING:
    from spanforge.reference import RagResult

__all__ = ["CliError", "console", "grounding", "milliseconds", "print_json", "score", "table", "visible"]

_PIPE_WIDTH: Final = 160

console = Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


class CliError(SpanforgeError):
    """A call that cannot be carried out; the message says why, and what would do."""


def print_json(value: object) -> None:
    """Print one JSON document, strict and ASCII, for pipes."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def visible(text: object) -> str:
    """Return text that cannot drive the terminal: control characters stand as escapes, markup as it is."""
    return escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text)))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; columns whose name begins with `#` are numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for column in columns:
        number = column.startswith("#")
        made.add_column(column.lstrip("#"), justify="right" if number else "left", overflow="fold", no_wrap=number)
    for row in rows:
        made.add_row(*(visible(cell) for cell in row))
    console.print(made)


def milliseconds(value: float | None) -> str:
    """Write a time in milliseconds."""
    return "" if value is None else f"{value:,.1f} ms"


def grounding(result: RagResult) -> str:
    """Write an answer's grounding; an answer that claims nothing has none to show."""
    return score(result.grounding_score if result.claims_total else None)


def score(value: float | None) -> str:
    """Write a measure in [0, 1]."""
    return "-" if value is None else f"{value:.2f}"
