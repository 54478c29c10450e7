"""Which parser reads which file, told by its media type, its name, or what it holds."""

from __future__ import annotations

import importlib
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import PurePath
from typing import Final, NamedTuple

from spanforge.exceptions import MissingExtraError
from spanforge.reference.failures import ParseError, Translated, UnsupportedFormat
from spanforge.reference.parsing.archive import DAMAGED
from spanforge.reference.parsing.base import MAX_FILE_BYTES, SEPARATOR, Extract, ParsedDocument, bounded
from spanforge.reference.parsing.coding import is_text, normal
from spanforge.reference.parsing.coverage import ENOUGH, coverage


class _Format(NamedTuple):
    media_type: str
    module: str
    function: str
    suffixes: tuple[str, ...]
    start: bytes = b""
    parts: tuple[str, ...] = ()


_OPEN_XML: Final = "application/vnd.openxmlformats-officedocument"
_FORMATS: Final = (
    _Format("text/plain", "plain", "parse_text", (".txt", ".text", ".log", ".adoc", ".org", ".tex")),
    _Format("text/x-rst", "restructured", "parse_rst", (".rst", ".rest")),
    _Format("text/markdown", "plain", "parse_markdown", (".md", ".markdown", ".mdx")),
    _Format("text/html", "html", "parse_html", (".html", ".htm", ".xhtml")),
    _Format("application/pdf", "pdf", "parse_pdf", (".pdf",), b"%PDF-"),
    _Format(f"{_OPEN_XML}.wordprocessingml.document", "docx", "parse_docx", (".docx", ".docm", ".dotx"),
            parts=("word/document.xml",)),
    _Format(f"{_OPEN_XML}.presentationml.presentation", "slides", "parse_slides", (".pptx", ".pptm", ".ppsx"),
            parts=("ppt/presentation.xml",)),
    _Format(f"{_OPEN_XML}.spreadsheetml.sheet", "sheets", "parse_sheets", (".xlsx", ".xlsm", ".xlsb", ".xls"),
            b"\xd0\xcf\x11\xe0", ("xl/workbook.xml", "xl/workbook.bin")),
    _Format("application/vnd.oasis.opendocument.spreadsheet", "opendocument", "parse_open_sheets", (".ods",)),
    _Format("application/vnd.oasis.opendocument.text", "opendocument", "parse_opendocument", (".odt", ".ott")),
    _Format("application/vnd.oasis.opendocument.presentation", "opendocument", "parse_opendocument", (".odp",)),
    _Format("application/epub+zip", "containers", "parse_book", (".epub",)),
    _Format("application/rtf", "plain", "parse_rtf", (".rtf",), b"{\\rtf"),
    _Format("message/rfc822", "containers", "parse_message", (".eml",)),
    _Format("text/csv", "tabular", "parse_csv", (".csv",)),
    _Format("text/tab-separated-values", "tabular", "parse_csv", (".tsv", ".tab")),
    _Format("application/jsonl", "values", "parse_jsonl", (".jsonl", ".ndjson")),
    _Format("application/json", "values", "parse_json", (".json",)),
    _Format("application/x-ipynb+json", "values", "parse_notebook", (".ipynb",)),
)  # fmt: skip
"""The kinds of files, with the bytes that they begin with, or the parts that an archive of the kind has."""
_NAMED_KIND: Final = re.compile(r"\.[a-z][a-z0-9]{0,9}")
"""A suffix that means a format, rather than the rest of a name: "minutes of 3.11"."""
_HTML: Final = (b"<!doctype html", b"<html", b"<?xml")
_TEXTS: Final = frozenset({"application/jsonl", "application/json", "application/x-ipynb+json", "message/rfc822"})
_HEAD: Final = 4_096
_BY_SUFFIX: Final = {suffix: fmt for fmt in _FORMATS for suffix in fmt.suffixes}
_BY_MEDIA_TYPE: Final = {fmt.media_type: fmt for fmt in _FORMATS}


def supported_suffixes() -> frozenset[str]:
    """Return the file suffixes, lower-cased and with their dot, that have a parser."""
    return frozenset(_BY_SUFFIX)


def media_type_of(name: str) -> str:
    """Return the media type for a file name, or an empty string for an unknown suffix."""
    fmt = _BY_SUFFIX.get(PurePath(name).suffix.lower())
    return fmt.media_type if fmt else ""


def kind_of(content: bytes) -> str:
    """Return the media type of a file by its first bytes, empty where it is of no kind that is read."""
    head = content[:_HEAD]
    for fmt in _FORMATS:
        if fmt.start and head.startswith(fmt.start):
            return fmt.media_type
    if head.startswith(b"PK\x03\x04"):
        return _archive(content)
    if not is_text(head):
        return ""
    return "text/html" if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_HTML) else "text/plain"


def is_text_kind(media_type: str) -> bool:
    """Tell whether files of a media type are text, so that their bytes cannot tell one such type from another."""
    return media_type.startswith("text/") or media_type in _TEXTS


def _archive(content: bytes) -> str:
    # Not an `Archive`, which refuses what is too costly: that is for whoever reads it to say.
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            said = archive.open("mimetype").read(100).decode("ascii", "replace").strip() if "mimetype" in names else ""
    except DAMAGED:
        return ""
    return said or next((fmt.media_type for fmt in _FORMATS if set(fmt.parts) & set(names)), "")


def read(content: bytes, name: str = "", media_type: str = "", otherwise: str = "") -> ParsedDocument:
    """Return a document's text in sections, read in this process: `parse` does so in a child.

    Args:
        content: The file.
        name: Its name, whose suffix tells the format where ``media_type`` does not.
        media_type: Its media type, empty where unknown. What neither tells, its first bytes do.
        otherwise: For what was given as text: its media type where neither names a kind of text.

    Raises:
        UnsupportedFormat: No parser for this kind, or its optional package is not installed.
        ParseError: The bytes are damaged, encrypted or empty, or unfold to too much text.
    """
    if len(content) > MAX_FILE_BYTES:
        raise ParseError(f"A file larger than {MAX_FILE_BYTES} bytes is refused; split it.")
    suffix = PurePath(name).suffix.lower()
    fmt = _BY_MEDIA_TYPE.get(media_type) or _BY_SUFFIX.get(suffix)
    if otherwise and (fmt is None or not fmt.media_type.startswith("text/")):
        fmt = _BY_MEDIA_TYPE[otherwise]
    if fmt is None and not _NAMED_KIND.fullmatch(suffix):
        fmt = _BY_MEDIA_TYPE.get(kind_of(content))
    if fmt is None:
        raise UnsupportedFormat
    return _checked(_parser(fmt)(content), fmt.media_type)


def _parser(fmt: _Format) -> Callable[[bytes], Extract]:
    with Translated((MissingExtraError,), lambda error: UnsupportedFormat(str(error))):
        return getattr(importlib.import_module(f"spanforge.reference.parsing.{fmt.module}"), fmt.function)


def _checked(extract: Extract, media_type: str) -> ParsedDocument:
    sections = bounded(extract.sections)
    covered = coverage(extract.nodes, SEPARATOR.join(f"{one.heading}\n{one.text}" for one in sections))
    warnings = extract.warnings
    if covered < ENOUGH:
        warnings += (f"Only {covered:.0%} of the words in the file were extracted.",)
    title = " ".join(normal(extract.title).split())[:200]
    return ParsedDocument(sections, media_type, title, extract.date, covered, warnings)
