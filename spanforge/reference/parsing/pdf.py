"""PDF, page by page."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.base import ParsedDocument, Section, bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

# PDFium keeps state for the whole process and must not be entered by two threads at once.
_pdfium_lock = threading.Lock()


def parse_pdf(content: bytes) -> ParsedDocument:
    """Return one section a page, numbered from 1.

    Raises:
        ParseError: The file is damaged, encrypted, or holds pictures of text only.
    """
    pdfium = load("pypdfium2", "reference")
    reason = ""
    with _pdfium_lock:
        try:
            document = pdfium.PdfDocument(content)
            try:
                title = str(document.get_metadata_dict(skip_empty=True).get("Title", ""))
                return bounded(_pages(document), "application/pdf", title=title)
            finally:
                document.close()
        except pdfium.PdfiumError as error:
            reason = _reason(error)
    raise ParseError(reason)


def _pages(document: Untyped) -> Iterator[Section]:
    for number in range(len(document)):
        page = document[number]
        text_page = page.get_textpage()
        try:
            text = str(text_page.get_text_bounded())
        finally:
            text_page.close()
            page.close()
        # U+FFFE and U+0002 are PDFium's marks of a hyphen at a line end; joined, the word can be found again.
        text = text.replace("\ufffe\r\n", "").replace("\x02\r\n", "").replace("\ufffe", "").replace("\x02", "")
        yield Section(text.replace("\r\n", "\n").replace("\x00", ""), "text", page=number + 1)


def _reason(error: Exception) -> str:
    if "password" in str(error).lower():
        return "The PDF is encrypted; remove its password first."
    return "The PDF is damaged or truncated."
