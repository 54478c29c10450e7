"""What a reader sees of a page: without scripts and navigation, with what is unfolded by a click."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spanforge.reference._extras import Untyped
from spanforge.reference.parsing.tree import SENTENCE, one_line

_UNSEEN: Final = frozenset((
    "script", "style", "template", "head", "iframe", "object", "svg", "audio", "video", "canvas", "datalist", "rp",
    "-comment", "_comment", "-doctype",
))  # fmt: skip
_LINKED: Final = 0.8
"""Share of the letters of a `nav` that stand in links, from which on it is navigation; so is one without a sentence."""
_FEWEST_BLANKS: Final = 3
"""Blanks in a sentence of such a `nav`: an abbreviation, a date or a name with a stop is none."""
_ANCHORS: Final = frozenset({"\u00b6", "#"})
"""What a link says that leads to the heading in which it stands."""


def unfold(page: Untyped) -> None:
    """Show what a reader unfolds: the panels of tabs and accordions, and no menus."""
    menus = {_controlled(node) for node in page.css("nav [aria-controls], header [aria-controls]")}
    names = {_controlled(node) for node in page.css("[aria-controls]:is([role=tab], [aria-expanded])")} - menus
    panels = page.css("[role=tabpanel], [hidden=until-found]")
    for node in [*panels, *(node for node in page.css("[id]") if node.attributes["id"] in names)]:
        for name in {"hidden", "style"} & set(node.attributes):
            del node.attrs[name]


def _controlled(node: Untyped) -> str:
    return str(node.attributes["aria-controls"])


def children(node: Untyped) -> Iterator[Untyped]:
    """Yield what a reader sees of what stands in an element."""
    child = None if node is None else node.child
    while child is not None:
        if child.tag == "-text" or not _is_unseen(child):
            yield child
        child = child.next


def _is_unseen(node: Untyped) -> bool:
    tag = node.tag
    # Instructions and the like have no name.
    if tag is None or tag in _UNSEEN or tag.startswith("!"):
        return True
    attributes = node.attributes
    style = (attributes.get("style") or "").replace(" ", "").lower()
    if "hidden" in attributes or "display:none" in style or "visibility:hidden" in style:
        return True
    if tag == "a" and str(node.text(deep=True)).strip() in _ANCHORS:
        return True
    if tag != "nav" and attributes.get("role") != "navigation":
        return False
    said = [one_line(text) for text in texts(node)]
    linked = sum(len(one_line(str(link.text(deep=True)))) for link in node.css("a"))
    is_prose = any(SENTENCE.search(text) and text.count(" ") >= _FEWEST_BLANKS for text in said)
    return linked >= _LINKED * sum(map(len, said)) or not is_prose


def texts(node: Untyped) -> Iterator[str]:
    """Yield the text nodes that a reader sees in an element."""
    for child in children(node):
        if child.tag == "-text":
            yield str(child.text_content or "")
        else:
            yield from texts(child)
