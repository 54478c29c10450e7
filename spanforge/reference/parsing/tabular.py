"""Tables: CSV by whatever dialect, and sheets of workbooks.

Each row becomes one line that names its columns, so that a passage is understood without the head of the table.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from spanforge.reference._extras import load
from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.archive import Archive, properties
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.coding import decode, normal
from spanforge.reference.parsing.tree import names_columns, one_head, one_line, row_sections, row_text

_SEPARATORS: Final = ",;\t|"
_SAMPLE_ROWS: Final = 200
_PREAMBLE: Final = 20
"""Rows within which the head of a table stands."""
_SEP: Final = re.compile(r'"?sep=([^"\n]?)"?\s*\n', re.IGNORECASE)
_EXACT: Final = 1e15
_UNREADABLE: Final = "The table is damaged, or a cell is longer than 131072 characters."


def parse_csv(content: bytes) -> Extract:
    """Return the rows of a CSV file, in whatever dialect it is written.

    Raises:
        ParseError: The table is damaged, or a cell is too long.
    """
    text = decode(content)
    said = _SEP.match(text)
    text = text[said.end() :] if said else text
    separator = (said[1] or "\t") if said else _separator(text)
    with Translated((csv.Error,), lambda _: ParseError(_UNREADABLE)):
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        return Extract(_sections([[one_line(cell) for cell in row] for row in lines]))


def parse_sheets(content: bytes) -> Extract:
    """Return the rows of every sheet of a workbook, under the sheet's name.

    Raises:
        ParseError: The workbook is damaged or encrypted.
    """
    calamine = load("python_calamine", "reference")
    archive = Archive(content) if content.startswith(b"PK") else None
    with Translated((calamine.CalamineError,), lambda _: ParseError("The workbook is damaged or encrypted.")):
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheets = {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}
    cells = {name: [[_cell(cell) for cell in row] for row in rows] for name, rows in sheets.items()}
    nodes = (cell for rows in cells.values() for row in rows for cell in row if cell)
    sections = (section for name, rows in cells.items() for section in _sections(rows, name))
    return Extract(sections, *properties(archive and archive.xml("docProps/core.xml")), nodes)


def _separator(text: str) -> str:
    """Return the separator under which most rows have equally many cells, and the most of them."""
    lines = text.split("\n", _SAMPLE_ROWS)[:_SAMPLE_ROWS]

    def score(separator: str) -> tuple[float, int]:
        try:
            widths = Counter(len(row) for row in csv.reader(lines, delimiter=separator) if any(row))
        except csv.Error:
            return 0.0, 0
        wide = {width: count for width, count in widths.items() if width > 1}
        width = max(wide, key=lambda one: (wide[one], one), default=1)
        return (wide[width] / widths.total() if wide else 0.0), width

    return max(_SEPARATORS, key=score)


def _sections(rows: Iterable[Sequence[str]], heading: str = "") -> Iterator[Section]:
    """Yield the title over a table as text, then its rows under the names of their columns."""
    filled = [row for row in rows if any(row)]
    start = _table_start(filled)
    yield Section("\n".join(" ".join(filter(None, row)) for row in filled[:start]), heading=heading)
    head, body = _head(filled[start:])
    yield from row_sections([row_text(head, row) for row in body] or [" ".join(filter(None, head))], heading)


def _table_start(rows: Sequence[Sequence[str]]) -> int:
    """Return which row the table begins with: the first that fills as many cells as rows below it do."""
    widths = Counter(sum(map(bool, row)) for row in rows[:_SAMPLE_ROWS])
    usual = max(widths, key=lambda one: (widths[one], one), default=1)
    if usual == 1:
        return 0
    wide = (place for place, row in enumerate(rows[:_PREAMBLE]) if 2 * sum(map(bool, row)) > usual)
    return next(wide, 0)


def _head(rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the names of the columns, from one row or two, and the rows below them."""
    names: Sequence[str] = rows[0] if rows else ()
    below = rows[1:]
    if len(names) > 1 and not (below and names_columns(names)):
        return [], rows
    if "" in names and [names_columns(row) for row in below[:2]] == [True, False]:
        return one_head(names, below[0]), below[1:]
    return names, below


def _cell(value: object) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case dt.datetime():
            return value.isoformat(" ")
        case _:
            return one_line(normal(str(value)))
