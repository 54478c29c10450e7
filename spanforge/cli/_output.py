"""What the verbs print with: tables for people, JSON for programs, and how numbers and times are written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spanforge import _clock
from spanforge.exceptions import SpanforgeError

if TYPE_CHECKING:
    from spanforge import SinkLedger
    from spanforge.reference import RagResult

__all__ = [
    "CliError",
    "console",
    "grounding",
    "milliseconds",
    "passage",
    "print_json",
    "print_ledger",
    "score",
    "table",
    "utc",
    "visible",
]

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


def utc(text: str) -> str:
    """Return a time as `YYYY-MM-DD hh:mm:ss.ffffff` in UTC, whatever zone it was written in; no time, as it is."""
    with suppress(ValueError):
        text = _clock.timestamp(_clock.parse_timestamp(text))
    return text[:26].replace("T", " ")


def passage(text: str) -> str:
    """Return a text of several lines in the same way, its lines kept."""
    return "\n".join(map(visible, text.split("\n")))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; columns whose name begins with `#` are numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for column in columns:
        number = column.startswith("#")
        made.add_column(column.lstrip("#"), justify="right" if number else "left", overflow="fold", no_wrap=number)
    for row in rows:
        made.add_row(*(visible(cell) for cell in row))
    console.print(made)


def print_ledger(sinks: Mapping[str, SinkLedger], left: int) -> None:
    """Print what became of the events of each sink, and how many deliveries were given up."""
    table(
        "ledger: accepted = delivered + failed + dropped + pending",
        ["sink", "#accepted", "#delivered", "#failed", "#dropped", "#pending"],
        [
            (name, ledger.accepted, ledger.delivered, ledger.failed, sum(ledger.dropped.values()), ledger.pending)
            for name, ledger in sinks.items()
        ],
    )
    if left:
        console.print(f"{left} deliveries were given up")


def milliseconds(value: float | None) -> str:
    """Write a time in milliseconds."""
    return "" if value is None else f"{value:,.1f} ms"


def grounding(result: RagResult) -> str:
    """Write an answer's grounding; an answer that claims nothing has none to show."""
    return score(result.grounding_score if result.claims_total else None)


def score(value: float | None) -> str:
    """Write a measure in [0, 1]."""
    return "-" if value is None else f"{value:.2f}"
