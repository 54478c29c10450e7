"""OpenDocument texts and presentations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spanforge.reference._extras import Untyped
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.archive import Archive, attribute, local, nearest, texts
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.dates import date_of
from spanforge.reference.parsing.tree import Block, cell, markdown, one_line, table, whole_number

_UNSEEN: Final = frozenset((
    "tracked-changes", "automatic-styles", "scripts", "font-face-decls", "sequence-decls", "bookmark", "object",
    "binary-data", "page-number", "creator", "date", "image",
))  # fmt: skip
_BREAKS: Final = {"tab": " ", "line-break": "\n"}
_ASIDE: Final = frozenset({"note", "annotation", "text-box"})
_MOST_REPEATED: Final = 20


def parse_opendocument(content: bytes) -> Extract:
    """Return the text as Markdown: headings by level, lists, and table rows as "column: value" lines.

    Raises:
        ParseError: The file is damaged, encrypted or not an OpenDocument file.
    """
    archive = Archive(content)
    root = archive.xml("content.xml")
    if root is None:
        raise ParseError("The document is damaged, encrypted or not an OpenDocument file.")
    text = _Text()
    styles = archive.xml("styles.xml")
    edges = [] if styles is None else [one for one in styles.iter() if local(one) in {"header", "footer"}]
    blocks = [*(block for edge in edges for block in text.blocks(edge)), *text.blocks(root)]
    meta = archive.xml("meta.xml")
    said = {} if meta is None else {local(one): one.text or "" for one in meta.iter()}
    return Extract(
        [Section(markdown(blocks), "markdown")],
        said.get("title", ""),
        date_of(said.get("date", "")),
        texts(root, _UNSEEN),
    )


class _Text:
    """Walks a document."""

    def __init__(self) -> None:
        self._aside: list[Block] = []

    def blocks(self, parent: Untyped, depth: int = -1) -> Iterator[Block]:
        """Yield what stands in a body, a cell, an item or a note."""
        for child in parent:
            match local(child):
                case "h":
                    level = attribute(child, "outline-level")
                    yield from self._paragraph(child, "heading", int(level) if level.isdecimal() else 1)
                case "p":
                    yield from self._paragraph(child)
                case "list":
                    yield from self.blocks(child, depth + 1)
                case "list-item" | "list-header":
                    yield from self._item(child, depth)
                case "table":
                    yield from self._table(child)
                case name if name not in _UNSEEN:
                    yield from self.blocks(child, depth)
                case _:
                    continue

    def _item(self, node: Untyped, depth: int) -> Iterator[Block]:
        for place, block in enumerate(self.blocks(node, depth)):
            first = place == 0 and block.kind == "paragraph"
            yield Block(block.text, "item", max(0, depth)) if first else block

    def _paragraph(self, node: Untyped, kind: str = "paragraph", level: int = 0) -> Iterator[Block]:
        text = self._text(node).strip()
        if text:
            yield Block(one_line(text), "heading", level) if kind == "heading" else Block(text)
        aside, self._aside = self._aside, []
        yield from aside

    def _text(self, node: Untyped) -> str:
        pieces = [node.text or ""]
        for child in node:
            name = local(child)
            if name == "s":
                pieces.append(" ")
            elif name in _BREAKS:
                pieces.append(_BREAKS[name])
            elif name in _ASIDE:
                self._aside += list(self.blocks(child))
            elif name not in _UNSEEN:
                pieces.append(self._text(child))
            pieces.append(child.tail or "")
        return "".join(pieces)

    def _table(self, node: Untyped) -> Iterator[Block]:
        inner: list[Block] = []
        rows: list[list[str]] = []
        for row in nearest(node, "table-row", _UNSEEN):
            cells: list[str] = []
            for part in (one for one in row if local(one) in {"table-cell", "covered-table-cell"}):
                text, rows_inside = cell(self.blocks(part))
                inner += rows_inside
                times = attribute(part, "number-columns-repeated")
                cells += [text] * whole_number(times, least=1, most=_MOST_REPEATED)
            rows.append(cells)
        yield from table(rows)
        yield from inner
