"""What an upload is, told by what it holds: a name is only asked which kind of text a text is."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final

from spanforge.reference.failures import ParseError, UnsupportedFormat
from spanforge.reference.parsing import media_type_of
from spanforge.reference.parsing.unfolding import (
    DAMAGED_ARCHIVE,
    DEFAULT_LIMITS,
    Limits,
    check_docx,
    check_html,
    check_pdf,
)

PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HTML: Final = "text/html"
PLAIN: Final = "text/plain"
_HEAD: Final = 4_096
_ZIP: Final = b"PK\x03\x04"
_DOCX_PART: Final = "word/document.xml"
_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
_HTML_STARTS: Final = (b"<!doctype html", b"<html", b"<?xml")


def sniff(content: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the media type of a file.

    Args:
        content: Its bytes.
        name: Its name, which only tells Markdown, tables and plain text apart.
        limits: What it may unfold to: an upload is refused as a whole, before there is a job for it.

    Raises:
        UnsupportedFormat: It is of no kind that can be read.
        ParseError: It is a damaged archive, or unfolds without measure.
    """
    head = content[:_HEAD]
    if head.startswith(b"%PDF-"):
        check_pdf(content, limits)
        return PDF
    if head.startswith(_ZIP):
        return _archive(content, limits)
    if not _is_text(head):
        raise UnsupportedFormat
    by_name = media_type_of(PurePosixPath(name).name)
    if by_name == HTML or head.lstrip().lower().startswith(_HTML_STARTS):
        check_html(content, limits)
        return HTML
    return PLAIN if by_name in {"", PDF, DOCX} else by_name


def _archive(content: bytes, limits: Limits) -> str:
    names: list[str] | None = None
    with suppress(*DAMAGED_ARCHIVE), zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
    if names is None:
        raise ParseError("The archive is damaged; send the file again.")
    if _DOCX_PART not in names:
        raise UnsupportedFormat("Archives are not unpacked; send the documents one by one.")
    check_docx(content, limits)
    return DOCX


def _is_text(head: bytes) -> bool:
    if head.startswith(_MARKS):
        return True
    controls = sum(head.count(byte) for byte in _CONTROLS)
    return 0 not in head and controls <= len(head) // 10
