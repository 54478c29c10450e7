"""Workbooks: every sheet that is shown, its cells as a reader sees them."""

from __future__ import annotations

import datetime as dt
import io
import re
from typing import Final

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.archive import Archive, attribute, nearest, parts, properties
from spanforge.reference.parsing.base import Extract
from spanforge.reference.parsing.coding import normal
from spanforge.reference.parsing.tabular import sections_of
from spanforge.reference.parsing.tree import one_line

_EXACT: Final = 1e15
_PLACE: Final = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_BUILT_IN: Final = {"9": "0%", "10": "0.00%"}
"""Formats of numbers that a workbook need not spell out."""


def parse_sheets(content: bytes) -> Extract:
    """Return the rows of every sheet of a workbook that is not hidden, under the sheet's name.

    Raises:
        ParseError: The workbook is damaged or encrypted.
    """
    calamine = load("python_calamine", "reference")
    archive = Archive(content) if content.startswith(b"PK") else None
    percentages = {} if archive is None else _percentages(archive)
    with Translated((calamine.CalamineError,), lambda _: ParseError("The workbook is damaged or encrypted.")):
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        shown = [one.name for one in book.sheets_metadata if one.visible == calamine.SheetVisibleEnum.Visible]
        cells = {name: _rows(book.get_sheet_by_name(name), percentages.get(name, {})) for name in shown}
    nodes = (cell for rows in cells.values() for row in rows for cell in row if cell)
    sections = (section for name, rows in cells.items() for section in sections_of(rows, name))
    hidden = len(book.sheet_names) - len(shown)
    warnings = (f"Hidden sheets that were not read: {hidden}.",) if hidden else ()
    return Extract(sections, *properties(archive and archive.xml("docProps/core.xml")), nodes, warnings)


def _rows(sheet: Untyped, percentages: dict[tuple[int, int], int]) -> list[list[str]]:
    """Return the cells of a sheet; what is merged downwards stands in each of its rows."""
    down, right = sheet.start or (0, 0)
    values: list[list[object]] = sheet.to_python()
    for (top, left), (bottom, _) in sheet.merged_cell_ranges or ():
        first, column = top - down, left - right
        # Cells that are merged outside of what is filled hold nothing.
        for row in values[first + 1 : bottom - down + 1] if min(first, column) >= 0 else ():
            row[column : column + 1] = values[first][column : column + 1]
    return [
        [_cell(value, percentages.get((down + y, right + x))) for x, value in enumerate(row)]
        for y, row in enumerate(values)
    ]


def _cell(value: object, decimals: int | None) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float() if decimals is not None:
            return f"{value:.{decimals}%}"
        case float() if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case dt.datetime():
            return value.isoformat(" ")
        case _:
            return one_line(normal(str(value)))


def _percentages(archive: Archive) -> dict[str, dict[tuple[int, int], int]]:
    """Return by sheet, row and column with how many decimals a number is shown as a percentage."""
    main = archive.main("xl/workbook.xml")
    targets = archive.relations(main)
    styles = parts(archive.xml(next((part for kind, part in targets.values() if kind == "styles"), "")))
    own = {attribute(one, "numFmtId"): attribute(one, "formatCode") for one in styles.get("numFmts", ())}
    forms = [(_BUILT_IN | own).get(attribute(one, "numFmtId"), "") for one in styles.get("cellXfs", ())]
    decimals = {str(at): len(form.partition(".")[2][:-1]) for at, form in enumerate(forms) if form.endswith("%")}
    if not decimals:
        return {}
    return {
        attribute(sheet, "name"): {
            _place(attribute(cell, "r")): decimals[style]
            for cell in nearest(archive.xml(targets.get(attribute(sheet, "id"), ("", ""))[1]), {"c"})
            if (style := attribute(cell, "s")) in decimals
        }
        for sheet in nearest(archive.xml(main), {"sheet"})
    }


def _place(name: str) -> tuple[int, int]:
    """Return row and column of a cell by its name: ``B3`` is (2, 1)."""
    match = _PLACE.fullmatch(name)
    column = 0
    for letter in match[1] if match else "":
        column = 26 * column + ord(letter) - ord("A") + 1
    return (int(match[2]) - 1, column - 1) if match else (-1, -1)
