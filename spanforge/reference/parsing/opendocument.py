"""OpenDocument texts and presentations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from spanforge.reference._extras import Untyped
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.archive import Archive, attribute, nearest, properties
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.tree import Block, markdown, whole_number
from spanforge.reference.parsing.walk import Walk

_UNSEEN: Final = (
    "{*}tracked-changes", "{*}automatic-styles", "{*}scripts", "{*}font-face-decls", "{*}sequence-decls",
    "{*}bookmark", "{*}object", "{*}binary-data", "{*}page-number", "{*}image", "{http://purl.org/dc/elements/1.1/}*",
)  # fmt: skip
_EDGES: Final = frozenset(f"{edge}{pages}" for edge in ("header", "footer") for pages in ("", "-left", "-first"))
"""What stands at the edge of each page, of those on the left, and of the first."""
_MOST_REPEATED: Final = 20
_DEEPEST: Final = 10


def parse_opendocument(content: bytes) -> Extract:
    """Return the text as Markdown: headings by level, lists, and table rows as "column: value" lines.

    Raises:
        ParseError: The file is damaged, encrypted or not an OpenDocument file.
    """
    archive = Archive(content)
    root = archive.xml("content.xml", _UNSEEN)
    if root is None:
        raise ParseError("The document is damaged, encrypted or not an OpenDocument file.")
    walk = _Text()
    edges = list(nearest(archive.xml("styles.xml", _UNSEEN), _EDGES))
    blocks = [*{block.text: block for edge in edges for block in walk.blocks(edge)}.values(), *walk.blocks(root)]
    nodes = (text for one in (*edges, root) for text in walk.texts(one))
    return Extract([Section(markdown(blocks), "markdown")], *properties(archive.xml("meta.xml")), nodes)


class _Text(Walk):
    spoken = frozenset()
    instead: ClassVar = {"s": " ", "tab": " ", "line-break": "\n"}
    aside = frozenset({"note", "annotation", "frame", "g", "custom-shape", "rect", "ellipse"})

    def __init__(self) -> None:
        super().__init__()
        self._depth = -1
        self.readers |= {
            "h": self.paragraph,
            "desc": self.paragraph,
            "list": self._list,
            "list-item": self._item,
            "list-header": self._item,
        }

    def block(self, node: Untyped, text: str) -> Block:
        level = attribute(node, "outline-level")
        return Block(text, "heading", whole_number(level, least=1, most=_DEEPEST)) if level else Block(text)

    def columns(self, node: Untyped, text: str, above: Sequence[str]) -> list[str]:
        del above
        return [text] * whole_number(attribute(node, "number-columns-repeated"), least=1, most=_MOST_REPEATED)

    def _list(self, node: Untyped) -> list[Block]:
        self._depth += 1
        blocks = self.blocks(node)
        self._depth -= 1
        return blocks

    def _item(self, node: Untyped) -> list[Block]:
        blocks = self.blocks(node)
        if blocks and blocks[0].kind == "paragraph":
            blocks[0] = blocks[0]._replace(kind="item", level=max(0, self._depth))
        return blocks
