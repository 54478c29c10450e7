"""What every parser returns, and the limits that keep a hostile file from hurting the process."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from spanforge.reference.failures import ParseError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FILE_BYTES = 256 * 2**20
"""A file larger than this is refused before it is read into memory."""
MAX_TEXT_CHARS = 64 * 2**20
"""A document that unfolds to more text than this is refused: a zip bomb, or not a document."""
SEPARATOR = "\n\n"

SectionKind = Literal["text", "markdown", "table"]


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of text that chunks do not cross: a page, a table, or a whole document.

    Attributes:
        text: Extracted text.
        kind: How it may be cut: by paragraphs, by Markdown structure, or by rows.
        page: Page, counted from 1, where the format has pages.
        heading: Title that stands over the section, empty where unknown.
    """

    text: str
    kind: SectionKind = "text"
    page: int | None = None
    heading: str = ""

    def __repr__(self) -> str:
        return f"Section(kind={self.kind!r}, page={self.page!r}, chars={len(self.text)})"


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document's sections in order. Offsets of chunks count in their texts joined by `SEPARATOR`."""

    sections: tuple[Section, ...]
    media_type: str
    title: str = ""

    def __repr__(self) -> str:
        return f"ParsedDocument(media_type={self.media_type!r}, sections={len(self.sections)})"


def bounded(sections: Iterable[Section], media_type: str, *, title: str = "") -> ParsedDocument:
    """Collect sections that hold text, and refuse a document that unfolds beyond `MAX_TEXT_CHARS`.

    Raises:
        ParseError: Too much text, or none at all.
    """
    kept: list[Section] = []
    total = 0
    for section in sections:
        total += len(section.text)
        if total > MAX_TEXT_CHARS:
            raise ParseError(f"The document unfolds to more than {MAX_TEXT_CHARS} characters; split it.")
        if section.text.strip():
            kept.append(section)
    if not kept:
        raise ParseError("The document holds no text; a scanned document needs text recognition first.")
    return ParsedDocument(tuple(kept), media_type, title.strip()[:200])


def decode(content: bytes) -> str:
    """Decode text of unknown encoding: byte-order marks first, then UTF-8, then Windows-1252.

    Raises:
        ParseError: The bytes are not text (many NUL or control bytes).
    """
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if content.startswith(mark):
            return _clean(content.decode(encoding, errors="replace"))
    controls = sum(content[:65536].count(byte) for byte in range(32) if byte not in b"\t\n\r\f\x1b")
    if controls > len(content[:65536]) // 10:
        raise ParseError("The file holds binary data, not text; check its suffix.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    return _clean(text)


def _clean(text: str) -> str:
    return text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
