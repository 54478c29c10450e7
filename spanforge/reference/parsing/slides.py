"""Slides: one section a slide, its title over what it says, and its notes."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import ClassVar, Final

from spanforge.reference._extras import Untyped
from spanforge.reference.parsing.archive import Archive, attribute, local, nearest, parts, properties
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.charts import chart
from spanforge.reference.parsing.tree import Block, markdown, one_line, whole_number
from spanforge.reference.parsing.walk import Placed, Places, Walk, length, reading_order

_UNSEEN: Final = ("{*}Fallback",)
_TITLES: Final = frozenset({"title", "ctrTitle"})
_FURNITURE: Final = frozenset({"sldNum", "dt", "sldImg"})
_SIDES: Final = frozenset({"notesSlide", "diagramData", "comments"})
"""What belongs to a slide and stands in parts of its own."""
_BOX: Final = (("off", "x"), ("off", "y"), ("ext", "cx"), ("ext", "cy"))
_NOWHERE: Final = ((-1.0, -1.0), (-1.0, -1.0))
"""Where a shape stands that says nothing of it: above the others."""


def parse_slides(content: bytes) -> Extract:
    """Return one section a slide, numbered from 1.

    Raises:
        ParseError: The file is damaged or encrypted.
    """
    archive = Archive(content)
    sections: list[Section] = []
    nodes: list[str] = []
    for number, name in enumerate(_in_order(archive), 1):
        relations = archive.relations(name)
        slide = _Slide(archive, relations)
        sides = [part for kind, part in relations.values() if kind in _SIDES]
        roots = [_without_furniture(archive.xml(part, _UNSEEN)) for part in (name, *sides)]
        blocks = [block for root in roots for block in slide.blocks(root)]
        nodes += (text for root in roots for text in slide.texts(root))
        sections.append(Section(markdown(blocks), "markdown", number, slide.title))
    return Extract(sections, *properties(archive.xml("docProps/core.xml")), nodes)


def _in_order(archive: Archive) -> list[str]:
    show = archive.main("ppt/presentation.xml")
    targets = archive.relations(show)
    listed = nearest(archive.xml(show), {"sldId"})
    named = [targets[key][1] for one in listed for key in one.attrib.values() if key in targets]
    return named or archive.names(posixpath.join(posixpath.dirname(show), "slides/slide"))


def _placeholder(shape: Untyped) -> str:
    return next((attribute(one, "type") or "body" for one in shape.iter("{*}ph")), "")


def _kind(shape: Untyped) -> tuple[str, str]:
    mark = next(shape.iter("{*}ph"), None)
    return attribute(mark, "type"), attribute(mark, "idx")


def _places(shape: Untyped) -> Places | None:
    """Return where a shape says that it stands; a placeholder may leave that to the layout of its slide."""
    said = next(shape.iter("{*}xfrm"), None)
    at = parts(said)
    if "off" not in at or "ext" not in at:
        return None
    x, y, width, height = (length(attribute(at[part], name)) for part, name in _BOX)
    if x is None or y is None:
        return None
    return (y, y + (height or 0.0)), (x, x + (width or 0.0))


def _without_furniture(root: Untyped) -> Untyped:
    for shape in list(root.iter("{*}sp")) if root is not None else ():
        if _placeholder(shape) in _FURNITURE:
            shape.getparent().remove(shape)
    return root


class _Slide(Walk):
    spoken = frozenset({"t", "v", "text"})
    instead: ClassVar = {"br": "\n", "tab": " "}

    def __init__(self, archive: Archive, relations: dict[str, tuple[str, str]]) -> None:
        super().__init__()
        self.title = ""
        self.readers |= {"sp": self._shape, "v": self.paragraph, "text": self.paragraph, "chart": self._chart}
        self._archive, self._relations = archive, relations
        layout = archive.xml(next((part for kind, part in relations.values() if kind == "slideLayout"), ""))
        self._places = {_kind(shape): _places(shape) for shape in nearest(layout, {"sp"})}

    def inside(self, parent: Untyped) -> Iterable[Untyped]:
        if local(parent) not in {"spTree", "grpSp"}:
            return parent
        shown = [one for one in parent if not local(one).endswith("Pr")]
        titles = [one for one in shown if _placeholder(one) in _TITLES]
        others = [one for one in shown if one not in titles]
        placed = [Placed(_places(one) or self._places.get(_kind(one)) or _NOWHERE, one) for one in others]
        return [*titles, *(reading_order(placed) if placed else ())]

    def block(self, node: Untyped, text: str) -> Block:
        level = whole_number(attribute(parts(node).get("pPr"), "lvl"), most=8)
        return Block(text, "item", level) if level else Block(text)

    def _chart(self, node: Untyped) -> list[Block]:
        _, part = self._relations.get(attribute(node, "id"), ("", ""))
        return list(chart(self._archive.xml(part)))

    def _shape(self, shape: Untyped) -> list[Block]:
        blocks = self.blocks(shape)
        if _placeholder(shape) not in _TITLES:
            return blocks
        text = one_line(" ".join(block.text for block in blocks))
        self.title = self.title or text
        return [Block(text, "heading", 2)]
