"""Slides: one section a slide, its title over what it says, and its notes."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from spanforge.reference._extras import Untyped
from spanforge.reference.parsing.archive import Archive, attribute, local
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.tree import Block, markdown, one_line, table, whole_number

_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"sldNum", "dt", "sldImg"})
_BREAKS = {"br": "\n", "tab": " "}
_SIDES = ("notesSlide", "diagramData", "comments", "chart")
"""What belongs to a slide and stands in parts of its own."""


def parse_slides(content: bytes) -> Extract:
    """Return one section a slide, numbered from 1.

    Raises:
        ParseError: The file is damaged or encrypted.
    """
    archive = Archive(content)
    show = archive.target("officeDocument") or "ppt/presentation.xml"
    title, date = archive.properties()
    slides = [_Slide(archive, name) for name in _in_order(archive, show)]
    sections = [
        Section(markdown(slide.blocks), "markdown", number, slide.title) for number, slide in enumerate(slides, 1)
    ]
    return Extract(sections, title, date, [node for slide in slides for node in slide.nodes])


def _in_order(archive: Archive, show: str) -> list[str]:
    root, targets = archive.xml(show), archive.relations(show)
    listed = [] if root is None else [one for one in root.iter() if local(one) == "sldId"]
    named = [targets[key][1] for one in listed for key in one.attrib.values() if key in targets]
    return named or archive.names(posixpath.join(posixpath.dirname(show), "slides/slide"))


class _Slide:
    """What a slide says; the texts that were seen are in `nodes`."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.nodes: list[str] = []
        self.title = ""
        root = archive.xml(name)
        self.blocks = [] if root is None else list(self._shapes(root))
        for kind, target in archive.relations(name).values():
            part = archive.xml(target) if kind in _SIDES else None
            self.blocks += [] if part is None else list(self._shapes(part))

    def _shapes(self, parent: Untyped) -> Iterator[Block]:
        for child in parent:
            match local(child):
                case "sp":
                    yield from self._shape(child)
                case "tbl":
                    rows = [one for one in child if local(one) == "tr"]
                    yield from table([[self._inside(cell) for cell in row if local(cell) == "tc"] for row in rows])
                case "p":
                    yield from self._paragraph(child)
                case "v" | "text" if child.text and not len(child):
                    yield from self._kept(child.text, Block(child.text))
                case "Fallback" | "f":
                    continue
                case _:
                    yield from self._shapes(child)

    def _shape(self, shape: Untyped) -> Iterator[Block]:
        kind = next((attribute(one, "type") or "body" for one in shape.iter() if local(one) == "ph"), "")
        if kind in _FURNITURE:
            return
        blocks = list(self._shapes(shape))
        if kind not in _TITLES:
            yield from blocks
            return
        text = one_line(" ".join(block.text for block in blocks))
        self.title = self.title or text
        if text:
            yield Block(text, "heading", 2)

    def _paragraph(self, node: Untyped) -> Iterator[Block]:
        said = next((one for one in node if local(one) == "pPr"), None)
        level, text = whole_number(attribute(said, "lvl"), most=8), self._text(node)
        yield from self._kept(text, Block(text, "item", level) if level else Block(text))

    def _kept(self, text: str, block: Block) -> Iterator[Block]:
        if text.strip():
            self.nodes.append(text)
            yield block

    def _inside(self, cell: Untyped) -> str:
        return " ".join(block.text for block in self._shapes(cell))

    def _text(self, node: Untyped) -> str:
        pieces = (
            (child.text or "") if local(child) == "t" else _BREAKS.get(local(child)) or self._text(child)
            for child in node
        )
        return "".join(pieces)
