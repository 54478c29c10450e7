"""Word documents: paragraphs and tables in the order of the page."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.base import ParsedDocument, Section, bounded
from spanforge.reference.parsing.tabular import row_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def parse_docx(content: bytes) -> ParsedDocument:
    """Return the text as Markdown: headings by level, table rows as "column: value" lines.

    Raises:
        ParseError: The file is damaged, encrypted, not a Word document, or unfolds beyond the limits.
    """
    docx = load("docx", "reference")
    lxml = load("lxml.etree", "reference")
    reason = ""
    try:
        document = docx.Document(io.BytesIO(content))
        blocks = list(_blocks(document))
        title = str(document.core_properties.title or "")
        return bounded([Section("\n\n".join(blocks), "markdown")], _MEDIA_TYPE, title=title)
    except (zipfile.BadZipFile, KeyError, ValueError, lxml.XMLSyntaxError, OSError, EOFError):
        reason = "The Word document is damaged, encrypted or not a .docx file."
    raise ParseError(reason)


def _blocks(document: Untyped) -> Iterator[str]:
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            yield from _table(block)
            continue
        text = block.text.replace("\x00", "").strip()
        if not text:
            continue
        style = (block.style.name or "") if block.style is not None else ""
        if style.startswith("Heading ") and style[8:].isdigit():
            yield f"{'#' * min(6, int(style[8:]))} {' '.join(text.split())}"
        elif style == "Title":
            yield f"# {' '.join(text.split())}"
        elif style.startswith("List"):
            yield f"- {text}"
        else:
            yield text


def _table(table: Untyped) -> Iterator[str]:
    rows = [[" ".join(cell.text.split()) for cell in row.cells] for row in table.rows]
    if len(rows) == 1:
        yield " ".join(rows[0])
    for row in rows[1:]:
        yield row_text(rows[0], row)
