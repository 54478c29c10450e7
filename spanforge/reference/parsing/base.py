"""What every parser returns, and the form that dates are read into."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Literal, NamedTuple

from spanforge.reference.failures import ParseError

MAX_FILE_BYTES: Final = 256 * 2**20
"""A file larger than this is refused before it is read into memory."""
MAX_TEXT_CHARS: Final = 64 * 2**20
"""A document that unfolds to more text than this is refused: a zip bomb, or not a document."""
SEPARATOR: Final = "\n\n"
_PDF: Final = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?)?")

SectionKind = Literal["text", "markdown", "table"]


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of text that chunks do not cross: a chapter of pages, a table, or a whole document.

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


class Extract(NamedTuple):
    """What a parser makes of a file.

    Attributes:
        sections: The text, in order.
        title: The document's own title, empty where it has none.
        date: When it was last changed, as it says itself.
        nodes: The text nodes of the file that a reader sees, as they stand there: what coverage is measured against.
        warnings: What a reader of the answers should know, without a word of the document.
    """

    sections: Iterable[Section]
    title: str = ""
    date: datetime | None = None
    nodes: Iterable[str] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document's sections in order. Offsets of chunks count in their texts joined by `SEPARATOR`.

    Attributes:
        date: When the document was last changed, as it says itself.
        coverage: Share in [0, 1] of the words in the file's own text nodes that were extracted.
        warnings: What is missing, in sentences that hold no word of the document.
    """

    sections: tuple[Section, ...]
    media_type: str
    title: str = ""
    date: datetime | None = None
    coverage: float = 1.0
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ParsedDocument(media_type={self.media_type!r}, sections={len(self.sections)})"


def bounded(sections: Iterable[Section]) -> tuple[Section, ...]:
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
    return tuple(kept)


def date_of(text: str) -> datetime | None:
    """Return the date that a text says, in ISO 8601, as in a PDF (D:2026...) or as in a message; None for any other.

    A time without a zone is taken for UTC.
    """
    text = text.strip()
    if match := _PDF.match(text):
        year, month, day, hour, minute, second, sign, east, more = match.groups()
        zone = f"{sign}{east}:{more or '00'}" if sign else "+00:00"
        text = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}"
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
        except (ValueError, TypeError, IndexError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None
