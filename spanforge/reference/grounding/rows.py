"""Rows of tables as lines of text: "column: value; column: value", the form in which most parsers hand them over.

A row is read as one statement, however many sentence marks stand in its cells, and never joined with the row above it.
A table that Markdown draws with bars is read as such rows too. What a passage needs from the part of a table before it,
the names of the columns or the first cell of a row it begins inside, stands as the last part of its heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

JOINT: Final = "; "
"""Stands between the cells of a row."""
LEVEL: Final = " > "
"""Stands between the parts of a heading."""
CONTINUED: Final = f"{JOINT}\u2026"
"""Ends the part of a heading that is the first cell of a row."""

_NAMED: Final = re.compile(r"(?P<column>[^\s:;|!?{}]+(?: [^\s:;|!?{}]+){0,7}): +(?=\S)")
"""The name of a column, of up to eight words, before its value."""
_MOST_WORDS: Final = 8
_MARKED: Final = re.compile(r"\s*(?:[#>|*\u2022-]|</?[a-z])")
"""Headings, quotations, list items and tags are no rows."""
_SENTENCES: Final = re.compile(r"[.!?] +[A-Z]")
_FEWEST_NAMED: Final = 2
_FEWEST_AROUND_SENTENCES: Final = 4
"""A line with whole sentences in it is prose with colons, unless it names this many columns."""
_RULER: Final = re.compile(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?)?[ \t]*\Z")
_BAR: Final = re.compile(r"(?<!\\)\|")


class Cell(NamedTuple):
    """A value under the name of its column, which is empty where the table has none."""

    column: str
    value: str

    def __str__(self) -> str:
        return f"{self.column}: {self.value}" if self.column else self.value


def cells_of(line: str) -> tuple[Cell, ...]:
    """Return the cells of a line that is a row, nothing for any other line.

    A row begins with a named cell, or with one whose column has no name; a piece without a name further on belongs to
    the value before it.
    """
    if JOINT not in line or "\n" in line or line.count(": ") < _FEWEST_NAMED or _MARKED.match(line):
        return ()
    cells: list[Cell] = []
    pieces = line.strip().split(JOINT)
    for place, piece in enumerate(pieces):
        named = _NAMED.match(piece)
        # A bracket that is not closed opens in a sentence: "(Danish: X; Swedish: Y)".
        if named and named["column"].count("(") == named["column"].count(")"):
            cells.append(Cell(named["column"], piece[named.end() :]))
        elif place == 0 and ": " not in piece and len(piece.split()) <= _MOST_WORDS:
            cells.append(Cell("", piece))
        elif place == 0:
            return ()
        else:
            cells[-1] = Cell(cells[-1].column, f"{cells[-1].value}{JOINT}{piece}")
    count = sum(bool(cell.column) for cell in cells)
    fewest = _FEWEST_AROUND_SENTENCES if _SENTENCES.search(line) else _FEWEST_NAMED
    return tuple(cells) if count >= fewest and 2 * count >= len(pieces) else ()


def column_of(cell: str) -> str:
    """Return the name of the column that a cell begins with, empty where it begins with none."""
    named = _NAMED.match(cell)
    return named["column"] if named else ""


def first_cell_in(heading: str) -> str:
    """Return the first cell of the row that a passage begins inside, empty where it begins with a row or with none."""
    part = heading.rpartition(LEVEL)[2]
    return part.removesuffix(CONTINUED) if part.endswith(CONTINUED) else ""


def drawn_tables(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where the rows of each table drawn with bars begin and end, and the line that names its columns."""
    start, above, head, begin = 0, "", "", 0
    for line in text.split("\n") if "|" in text else ():
        if head and "|" not in line:
            yield begin, start, head
            head = ""
        elif "|" in above and _RULER.match(line):
            head, begin = above, start + len(line) + 1
        above = line.strip()
        start += len(line) + 1
    if head:
        yield begin, start, head


def with_rows(text: str, heading: str = "") -> str:
    """Return a passage with the tables that are drawn with bars written as rows.

    Where it begins inside a table, the last part of the headings over it names the columns.
    """
    if "|" not in text:
        return text
    part = heading.rpartition(LEVEL)[2]
    columns = _drawn_cells(part) if part.startswith("|") else []
    lines = text.split("\n")
    written: list[str] = []
    for place, line in enumerate(lines):
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if "|" in line and _RULER.match(below):
            columns = _drawn_cells(line)
        elif "|" not in line:
            columns = []
            written.append(line)
        elif not _RULER.match(line):
            written.append(_row(columns, _drawn_cells(line)) if columns else line)
    return "\n".join(written)


def _row(columns: Sequence[str], values: Sequence[str]) -> str:
    names = [*columns, *("" for _ in range(len(values) - len(columns)))]
    return JOINT.join(str(Cell(name, value)) for name, value in zip(names, values, strict=False) if value)


def _drawn_cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [" ".join(cell.replace("\\|", "|").split()) for cell in _BAR.split(inner)]
