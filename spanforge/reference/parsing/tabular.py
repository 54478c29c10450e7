"""Tables: CSV by whatever dialect, and the rows of sheets.

Each row becomes one line that names its columns, so that a passage is understood without the head of the table.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.coding import decode
from spanforge.reference.parsing.tree import head_and_body, idle_head, is_over_values, named, one_line, row_sections

_SEPARATORS: Final = ",;\t|"
_SAMPLE_ROWS: Final = 200
_PREAMBLE: Final = 20
"""Rows within which the head of a table stands."""
_SEP: Final = re.compile(r'"?sep=([^"\n]?)"?\s*\n', re.IGNORECASE)
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
        rows = [[one_line(cell) for cell in row] for row in lines]
    return Extract(sections_of(rows), nodes=(cell for row in rows for cell in row))


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


def sections_of(rows: Iterable[Sequence[str]], heading: str = "") -> Iterator[Section]:
    """Yield the title over each table as text, then its rows under the names of their columns."""
    for table, is_preamble in _tables(rows):
        start = _table_start(table)
        yield Section("\n".join(" ".join(filter(None, row)) for row in table[:start]), heading=heading)
        head, body = head_and_body(table[start:], head=False if is_preamble else len(table[start]) == 1 or None)
        yield from row_sections([*filter(None, [idle_head(head, body)]), *named(head, body)], heading)


def _tables(rows: Iterable[Sequence[str]]) -> Iterator[tuple[list[Sequence[str]], bool]]:
    """Yield the tables of a sheet, and of each whether it only says something of a wider one below.

    Below an empty row, a head over values begins another table.
    """
    table: list[Sequence[str]] = []
    for filled, group in groupby(rows, any):
        part = list(group) if filled else []
        head = next((place for place, row in enumerate(part) if _filled(row) > 1), len(part))
        if table and is_over_values(part[head:]):
            yield table, _filled(part[head]) > max(map(_filled, table))
            table = []
        table += part
    if table:
        yield table, False


def _filled(row: Sequence[str]) -> int:
    return sum(map(bool, row))


def _table_start(rows: Sequence[Sequence[str]]) -> int:
    """Return which row the table begins with: the first that fills as many cells as rows below it do."""
    widths = Counter(width for row in rows[:_SAMPLE_ROWS] if (width := _filled(row)) > 1)
    usual = max(widths, key=lambda one: (widths[one], one), default=1)
    if usual == 1:
        return 0
    start = next((place for place, row in enumerate(rows[:_PREAMBLE]) if 2 * _filled(row) > usual), 0)
    above = "".join("x" if cell else " " for cell in rows[start - 1]).rstrip() if start else ""
    # The upper row of a head leaves columns out; a title over the whole table does not.
    return start - (" " in above and above.count("x") > 1 and is_over_values(rows[start:]))
