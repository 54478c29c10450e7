"""Tables as text: CSV, TSV and JSON lines.

Each row becomes one line that names its columns, so that a passage is understood without the head of the
table.
"""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from spanforge.reference.failures import ParseError
from spanforge.reference.grounding.rows import JOINT
from spanforge.reference.parsing.base import ParsedDocument, Section, bounded, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS_A_SECTION = 1000
"""Rows of one section: a table may be longer than what is cut at once."""


def parse_csv(content: bytes) -> ParsedDocument:
    """Return the rows of a CSV file, its first row as names of the columns."""
    return _parse_delimited(content, ",", "text/csv")


def parse_tsv(content: bytes) -> ParsedDocument:
    """Return the rows of a file separated by tabs, its first row as names of the columns."""
    return _parse_delimited(content, "\t", "text/tab-separated-values")


def parse_jsonl(content: bytes) -> ParsedDocument:
    """Return the objects of a file with one JSON value a line.

    Raises:
        ParseError: A line is not JSON.
    """
    return bounded(_sections(_json_lines(decode(content))), "application/jsonl")


def row_text(head: Sequence[str], row: Sequence[str]) -> str:
    """Return a row as one line, "column: value; column: value", empty cells left out."""
    names = [*head, *("" for _ in range(len(row) - len(head)))]
    cells = zip(names, row, strict=False)
    return JOINT.join(f"{name.strip()}: {value}" if name.strip() else value for name, value in cells if value.strip())


def _parse_delimited(content: bytes, delimiter: str, media_type: str) -> ParsedDocument:
    text = decode(content)
    with suppress(csv.Error):
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=_sniffed(text, delimiter))
        head = next(rows, list[str]())
        lines = (row_text(head, [" ".join(cell.split()) for cell in row]) for row in rows)
        return bounded(_sections(lines), media_type)
    raise ParseError(f"The table is damaged, or a cell is longer than {csv.field_size_limit()} characters.")


def _sniffed(text: str, delimiter: str) -> str:
    first = text.partition("\n")[0]
    return ";" if delimiter == "," and first.count(";") > first.count(",") else delimiter


def _sections(lines: Iterator[str]) -> Iterator[Section]:
    block: list[str] = []
    for line in lines:
        if not line:
            continue
        block.append(line)
        if len(block) == ROWS_A_SECTION:
            yield Section("\n".join(block), "table")
            block = []
    if block:
        yield Section("\n".join(block), "table")


def _json_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        damaged = False
        value: object = None
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            damaged = True
        if damaged:
            raise ParseError(f"Line {number} is not JSON.")
        yield _flat(value)


def _flat(value: object) -> str:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return JOINT.join(f"{key}: {_scalar(item)}" for key, item in fields.items() if item not in (None, "", [], {}))
    return _scalar(value)


def _scalar(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())
