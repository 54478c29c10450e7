"""What an upload is, told by what it holds: a name is only asked which kind of text a text is."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import Final

from spanforge.reference.failures import ParseError, UnsupportedFormat
from spanforge.reference.parsing import media_type_of
from spanforge.server.unfolding import MAX_ENTRY, check_archive, check_html, check_pdf

PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HTML: Final = "text/html"
PLAIN: Final = "text/plain"
_HEAD: Final = 4_096
_ZIP: Final = b"PK\x03\x04"
_DOCX_PART: Final = "word/document.xml"
_MAX_ENTRIES: Final = 10_000
_MAX_RATIO: Final = 200
"""Ordinary Word documents unfold to about ten times their size; what goes far beyond is made to."""
_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))
_HTML_STARTS: Final = (b"<!doctype html", b"<html", b"<?xml")


def sniff(content: bytes, name: str) -> str:
    """Return the media type of a file.

    Args:
        content: Its bytes.
        name: Its name, which only tells Markdown, tables and plain text apart.

    Raises:
        UnsupportedFormat: It is of no kind that can be read.
        ParseError: It is a damaged archive, or unfolds without measure.
    """
    head = content[:_HEAD]
    if head.startswith(b"%PDF-"):
        check_pdf(content)
        return PDF
    if head.startswith(_ZIP):
        return _archive(content)
    if not _is_text(head):
        raise UnsupportedFormat
    by_name = media_type_of(PurePosixPath(name).name)
    if by_name == HTML or head.lstrip().lower().startswith(_HTML_STARTS):
        check_html(content)
        return HTML
    return PLAIN if by_name in {"", PDF, DOCX} else by_name


def _archive(content: bytes) -> str:
    damaged = False
    entries: list[zipfile.ZipInfo] = []
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if not _unfolds(entries, len(content)):
                check_archive(archive)
    except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, OSError, EOFError):
        damaged = True
    if damaged:
        raise ParseError("The archive is damaged; send the file again.")
    if not any(entry.filename == _DOCX_PART for entry in entries):
        raise UnsupportedFormat("Archives are not unpacked; send the documents one by one.")
    if _unfolds(entries, len(content)):
        raise ParseError("The document unfolds to far more than its size; it is refused.")
    return DOCX


def _unfolds(entries: list[zipfile.ZipInfo], size: int) -> bool:
    """Tell whether an archive says of itself that it unfolds without measure."""
    unfolded = sum(entry.file_size for entry in entries)
    return len(entries) > _MAX_ENTRIES or unfolded > min(MAX_ENTRY, max(1 << 20, size * _MAX_RATIO))


def _is_text(head: bytes) -> bool:
    if head.startswith(_MARKS):
        return True
    controls = sum(head.count(byte) for byte in _CONTROLS)
    return 0 not in head and controls <= len(head) // 10
