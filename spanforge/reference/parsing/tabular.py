"""Tables: CSV by whatever dialect, and sheets of workbooks.

Each row becomes one line that names its columns, so that a passage is understood without the head of the table.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from spanforge.reference._extras import load
from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.archive import Archive, properties
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.coding import decode, normal
from spanforge.reference.parsing.tree import names_columns, one_line, row_sections, row_text

_SEPARATORS: Final = ",;\t|"
_SAMPLE_ROWS: Final = 200
_PREAMBLE: Final = 20
"""Rows within which the head of a table stands."""
_SEP: Final = "sep="
_EXACT: Final = 1e15
_UNREADABLE: Final = "The table is damaged, or a cell is longer than 131072 characters."


def parse_csv(content: bytes) -> Extract:
    """Return the rows of a CSV file, in whatever dialect it is written.

    Raises:
        ParseError: The table is damaged, or a cell is too long.
    """
    text = decode(content)
    separator = ""
    first, _, rest = text.partition("\n")
    if first.strip('" ').lower().startswith(_SEP) and len(first.strip('" ')) <= len(_SEP) + 1:
        separator, text = first.strip('" ')[len(_SEP) :] or "\t", rest
    separator = separator or _separator(text)
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


def _sections(rows: Sequence[Sequence[str]], heading: str = "") -> Iterator[Section]:
    """Yield the title over a table as text, then its rows under the names of their columns."""
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    start = _table_start(filled)
    above = "\n".join(" ".join(filter(None, row)) for row in filled[:start])
    yield Section(above, "text", heading=heading)
    head, body = _head(filled[start:])
    lines = [line for line in (row_text(head, row) for row in body) if line]
    if head and not lines:
        lines = [" ".join(filter(None, head))]
    yield from row_sections(lines, heading)


def _table_start(rows: Sequence[Sequence[str]]) -> int:
    """Return which row the table begins with: the first that fills as many cells as rows below it do."""
    widths = Counter(_filled(row) for row in rows[:_SAMPLE_ROWS])
    usual = max(widths, key=lambda one: (widths[one], one), default=1)
    if usual == 1:
        return 0
    wide = (place for place, row in enumerate(rows[:_PREAMBLE]) if 2 * _filled(row) > usual and _filled(row) > 1)
    return next(wide, 0)


def _head(rows: Sequence[Sequence[str]]) -> tuple[list[str], Sequence[Sequence[str]]]:
    """Return the names of the columns, from one row or two, and the rows below them."""
    if not rows or (len(rows[0]) > 1 and not names_columns(rows[0])) or _is_lone(rows):
        return [], rows
    names = list(rows[0])
    if _has_second_head(rows):
        over = ""
        for place, lower in enumerate(rows[1]):
            upper = names[place] if place < len(names) else ""
            over = upper or over
            names[place : place + 1] = [f"{over} {lower}".strip()]
        return names, rows[2:]
    return names, rows[1:]


def _has_second_head(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row groups columns that the second one names."""
    marks = [names_columns(row) for row in rows[1:3]]
    return "" in rows[0] and marks == [True, False]


def _is_lone(rows: Sequence[Sequence[str]]) -> bool:
    return len(rows) == 1 and len(rows[0]) > 1


def _filled(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


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
