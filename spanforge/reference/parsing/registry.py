"""Which parser reads which file."""

from __future__ import annotations

import importlib
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from spanforge.exceptions import MissingExtraError
from spanforge.reference.failures import ParseError, UnsupportedFormat
from spanforge.reference.parsing.base import MAX_FILE_BYTES, MAX_TEXT_CHARS, ParsedDocument
from spanforge.reference.parsing.unfolding import DEFAULT_LIMITS, Limits, check_docx, check_html, check_pdf

if TYPE_CHECKING:
    from collections.abc import Callable

    from spanforge.reference.models import Document


class _Format(NamedTuple):
    media_type: str
    module: str
    function: str
    suffixes: tuple[str, ...]
    guard: Callable[[bytes, Limits], None] | None = None
    """Asked of a document before its parser, which unfolds it whole."""


_FORMATS = (
    _Format("text/plain", "plain", "parse_text", (".txt", ".text", ".log", ".rst")),
    _Format("text/markdown", "plain", "parse_markdown", (".md", ".markdown", ".mdx")),
    _Format("text/html", "html", "parse_html", (".html", ".htm", ".xhtml"), check_html),
    _Format("application/pdf", "pdf", "parse_pdf", (".pdf",), check_pdf),
    _Format(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "docx",
        "parse_docx",
        (".docx",),
        check_docx,
    ),
    _Format("text/csv", "tabular", "parse_csv", (".csv",)),
    _Format("text/tab-separated-values", "tabular", "parse_tsv", (".tsv", ".tab")),
    _Format("application/jsonl", "tabular", "parse_jsonl", (".jsonl", ".ndjson")),
)
_BY_SUFFIX = {suffix: fmt for fmt in _FORMATS for suffix in fmt.suffixes}
_BY_MEDIA_TYPE = {fmt.media_type: fmt for fmt in _FORMATS}


def supported_suffixes() -> frozenset[str]:
    """Return the file suffixes, lower-cased and with their dot, that have a parser."""
    return frozenset(_BY_SUFFIX)


def media_type_of(name: str) -> str:
    """Return the media type for a file name, or an empty string for an unknown suffix."""
    fmt = _BY_SUFFIX.get(PurePath(name).suffix.lower())
    return fmt.media_type if fmt else ""


def parse(document: Document, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Return the document's text in sections.

    Text given as text is Markdown unless its media type or name says plain text. Bytes are read by media
    type, else by suffix.

    Args:
        document: What is read.
        limits: What it may unfold to.

    Raises:
        UnsupportedFormat: No parser for this kind, or its optional package is not installed.
        ParseError: The bytes are damaged, encrypted, empty, or unfold beyond the limits.
    """
    fmt = _BY_MEDIA_TYPE.get(document.media_type) or _BY_SUFFIX.get(PurePath(document.name).suffix.lower())
    if document.text is not None:
        if len(document.text) > MAX_TEXT_CHARS:
            raise ParseError(f"A text longer than {MAX_TEXT_CHARS} characters is refused; split it.")
        # Lone surrogates have no UTF-8 form; they become question marks rather than a failed document.
        content = document.text.encode("utf-8", errors="replace")
        if fmt is None or not fmt.media_type.startswith("text/"):
            fmt = _BY_MEDIA_TYPE["text/markdown"]
    elif document.content is None:
        raise ParseError("A document needs text or content.")
    elif fmt is None:
        raise UnsupportedFormat
    else:
        content = document.content
    if len(content) > MAX_FILE_BYTES:
        raise ParseError(f"A file larger than {MAX_FILE_BYTES} bytes is refused; split it.")
    if fmt.guard is not None:
        fmt.guard(content, limits)
    missing = ""
    try:
        module = importlib.import_module(f"spanforge.reference.parsing.{fmt.module}")
        return getattr(module, fmt.function)(content)
    except MissingExtraError as error:
        missing = str(error)
    raise UnsupportedFormat(missing)
