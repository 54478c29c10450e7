"""PDF, page by page: text where it stands on the page, values of forms, and notes."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.base import Extract, Section, date_of
from spanforge.reference.parsing.coding import normal
from spanforge.reference.parsing.layout import pages_of
from spanforge.reference.parsing.lines import Line, Segment, lines_of, without_edges
from spanforge.reference.parsing.ruled import Rules
from spanforge.reference.parsing.tree import Block, markdown

# PDFium keeps state for the whole process and must not be entered by two threads at once.
_pdfium_lock = threading.Lock()
_HYPHENS: Final = {"\x02": "-", "\ufffe": "-", "\u2010": "-", "\u2011": "-", "\u00ad": "-"}
"""PDFium's marks of a hyphen at a line end, and others that look like one."""
_WIDGET: Final = 20
_NOTES: Final = frozenset({1, 3, 8, 9, 10, 11, 13, 15})
"""Kinds of annotations that hold what somebody wrote: note, free text, highlight and its kin, stamp, ink."""
_TICKED: Final = frozenset({2, 3})
_EMPTY: Final = 2
_LONGEST_VALUE: Final = 1 << 16
_IMAGE: Final = 3
_NAMED_PAGES: Final = 20
_UPSIDE_DOWN: Final = 0.2
"""Radians that letters stand aslant at most to be upside down."""


def parse_pdf(content: bytes) -> Extract:
    """Return one section a page, numbered from 1.

    Raises:
        ParseError: The file is damaged or encrypted.
    """
    pdfium = load("pypdfium2", "reference")
    with _pdfium_lock, Translated((pdfium.PdfiumError,), _failure), closing(pdfium.PdfDocument(content)) as document:
        return _extract(document)


def _extract(document: Untyped) -> Extract:
    said: dict[str, str] = document.get_metadata_dict(skip_empty=True)
    document.init_forms()
    read = [_Page(document, number) for number in range(len(document))]
    headings = _headings(document)
    pages = without_edges([lines_of(page.segments) for page in read])
    sections = [
        Section(markdown([*blocks, *map(Block, page.notes)]), "markdown", number, headings.get(number, ""))
        for number, (page, blocks) in enumerate(
            zip(read, pages_of(pages, [page.grids for page in read]), strict=True), 1
        )
    ]
    nodes = (cell.text for page in [*pages, *_cells(read)] for line in page for cell in line)
    pictures = [str(number) for number, page in enumerate(read, 1) if page.is_picture]
    named = ", ".join(pictures[:_NAMED_PAGES]) + (" and others" if len(pictures) > _NAMED_PAGES else "")
    warnings = (f"Pages that are pictures without text, and were not read: {named}.",) if pictures else ()
    date = date_of(said.get("ModDate", "")) or date_of(said.get("CreationDate", ""))
    return Extract(sections, str(said.get("Title", "")), date, nodes, warnings)


def _cells(pages: list[_Page]) -> Iterator[list[Line]]:
    return (cell for page in pages for grid in page.grids for row in grid.rows for cell in row)


def _headings(document: Untyped) -> dict[int, str]:
    """Return by page the title of the chapter that it stands in, from the document's own list of contents."""
    starts: dict[int, str] = {}
    for mark in document.get_toc(max_depth=3):
        target = mark.get_dest()
        page = None if target is None else target.get_index()
        if page is not None:
            starts.setdefault(page + 1, " ".join(normal(mark.get_title()).split()))
    above = ""
    return {number: (above := starts.get(number, above)) for number in range(1, len(document) + 1)} if starts else {}


class _Page:
    """What stands on a page: its text and the values of its forms by place, its notes, and whether it is a picture."""

    def __init__(self, document: Untyped, number: int) -> None:
        self._raw = load("pypdfium2.raw", "reference")
        self._form = document.formenv
        self.notes: list[str] = []
        page = document[number]
        text = page.get_textpage()
        try:
            rules = Rules(self._raw, page)
            found = [*self._segments(text, rules), *self._annotations(page)]
            self.grids, self.segments = rules.grids(found)
            self.is_picture = not found and any(True for _ in page.get_objects([_IMAGE], max_depth=3))
        finally:
            text.close()
            page.close()

    def _segments(self, page: Untyped, rules: Rules) -> list[Segment]:
        """Return runs of letters that stand beside one another on a line."""
        raw, box = self._raw, self._raw.FS_RECTF()
        runs: list[Segment] = []
        blank, glyph = False, (0.0, 0.0)
        for place in range(page.count_chars()):
            code = int(raw.FPDFText_GetUnicode(page, place))
            letter = chr(code) if code <= sys.maxunicode else "\ufffd"
            if letter.isspace() or not code:
                blank = blank or letter.isspace()
                continue
            if not raw.FPDFText_GetLooseCharBox(page, place, ctypes.byref(box)):
                continue
            places = (box.left, box.bottom, box.right, box.top)
            if abs(raw.FPDFText_GetCharAngle(page, place) - math.pi) < _UPSIDE_DOWN:
                places = (-box.right, -box.top, -box.left, -box.bottom)
            one = Segment(*places, _HYPHENS.get(letter, letter))
            # The letters of a ligature stand in one box.
            if runs and (
                glyph == (one.left, one.right) or (runs[-1].goes_on_with(one) and not rules.part(runs[-1], one))
            ):
                runs[-1] = runs[-1].joined(one, " " if blank else "")
            else:
                runs.append(one)
            blank, glyph = False, (one.left, one.right)
        return [run.cleaned() for run in runs]

    def _annotations(self, page: Untyped) -> Iterator[Segment]:
        raw = self._raw
        for place in range(raw.FPDFPage_GetAnnotCount(page)):
            annotation = raw.FPDFPage_GetAnnot(page, place)
            if not annotation:
                continue
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            if kind == _WIDGET and self._form is not None:
                yield from self._widget(annotation)
            elif kind in _NOTES and (note := self._string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")):
                self.notes.append(note)
            raw.FPDFPage_CloseAnnot(annotation)

    def _widget(self, annotation: Untyped) -> Iterator[Segment]:
        raw, box = self._raw, self._raw.FS_RECTF()
        if raw.FPDFAnnot_GetFormFieldType(self._form, annotation) in _TICKED:
            ticked = raw.FPDFAnnot_IsChecked(self._form, annotation)
            value = self._string(raw.FPDFAnnot_GetFormFieldName, self._form, annotation) if ticked else ""
        else:
            value = self._string(raw.FPDFAnnot_GetFormFieldValue, self._form, annotation)
        if value and raw.FPDFAnnot_GetRect(annotation, ctypes.byref(box)):
            top, bottom = max(box.top, box.bottom), min(box.top, box.bottom)
            # A box of several lines stands where its first line does.
            yield Segment(box.left, max(bottom, top - 20), box.right, top, " ".join(value.split()))

    @staticmethod
    def _string(read: Untyped, *of: Untyped) -> str:
        size = read(*of, None, 0)
        if not _EMPTY < size <= _LONGEST_VALUE:
            return ""
        buffer = ctypes.create_string_buffer(size)
        read(*of, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
        return normal(buffer.raw[:size].decode("utf-16-le", "replace")).strip()


def _failure(error: Exception) -> ParseError:
    is_locked = "password" in str(error).lower()
    return ParseError(
        "The PDF is encrypted; remove its password first." if is_locked else "The PDF is damaged or truncated."
    )
