"""What is seen of an HTML page, and how its tables are put together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spanforge.reference._extras import Untyped
from spanforge.reference.parsing.tree import one_line

_UNSEEN: Final = frozenset(
    {"script", "style", "template", "head", "iframe", "object", "svg", "audio", "video", "canvas", "datalist", "rp"}
)
_LINKED: Final = 0.8
"""Share of the letters of a `nav` that stand in links, from which on it is navigation; so is one without a sentence."""
_SENTENCE: Final = re.compile(r"[.!?\u3002](?:\s|$)")


def children(node: Untyped) -> Iterator[Untyped]:
    """Yield what a reader sees of what stands in an element."""
    child = node.child
    while child is not None:
        if child.tag == "-text" or not _is_unseen(child):
            yield child
        child = child.next


def texts(node: Untyped) -> Iterator[str]:
    """Yield the text nodes that a reader sees in an element."""
    for child in children(node):
        if child.tag == "-text":
            yield str(child.text_content or "")
        else:
            yield from texts(child)


def _is_unseen(node: Untyped) -> bool:
    tag = node.tag
    # Instructions and the like have no name.
    if tag is None or tag in _UNSEEN or tag in {"-comment", "_comment", "-doctype"} or tag.startswith("!"):
        return True
    attributes = node.attributes
    style = (attributes.get("style") or "").replace(" ", "").lower()
    if "hidden" in attributes or "display:none" in style or "visibility:hidden" in style:
        return True
    is_nav = tag == "nav" or attributes.get("role") == "navigation"
    return is_nav and _is_links(node)


def _is_links(node: Untyped) -> bool:
    text = one_line(str(node.text(deep=True)))
    linked = sum(len(one_line(str(link.text(deep=True)))) for link in node.css("a"))
    return linked >= _LINKED * len(text) or not _SENTENCE.search(text)


def parts_of(node: Untyped) -> Iterator[Untyped]:
    """Yield the rows and captions of a table, not those of a table inside it."""
    for child in children(node):
        if child.tag in {"thead", "tbody", "tfoot"}:
            yield from parts_of(child)
        elif child.tag in {"tr", "caption"}:
            yield child


def is_layout(parts: list[Untyped]) -> bool:
    """Tell whether a table only places what stands in it: no head, and headings or tables in its cells."""
    rows = [part for part in parts if part.tag == "tr"]
    cells = [cell for row in rows for cell in children(row)]
    if any(cell.tag == "th" for cell in cells):
        return False
    return any(cell.css_first("h1, h2, h3, h4, table, form") is not None for cell in cells if cell.tag == "td")


def head_of(cells: list[Untyped]) -> bool | None:
    """Tell by its marks whether a first row names columns; None where the marks leave it open."""
    if len(cells) > 1 and all(cell.tag == "th" for cell in cells):
        return True
    return False if [cell.tag for cell in cells] == ["th", "td"] else None


def one_head(rows: list[list[str]], marked: list[bool]) -> list[list[str]]:
    """Return rows with a head of two rows made one: "Price EUR" for EUR under Price.

    Args:
        rows: Cells of each row.
        marked: Of each row, whether all its cells are marked as heads.
    """
    if marked[:3] != [True, True, False]:
        return rows
    width = max(len(rows[0]), len(rows[1]))
    upper, lower = (row + [""] * (width - len(row)) for row in rows[:2])
    over = ""
    named: list[str] = []
    for above, below in zip(upper, lower, strict=True):
        over = above or over
        named.append(below if over in {"", below} else f"{over} {below}".strip())
    return [named, *rows[2:]]


def fill(row: list[str], spans: dict[int, tuple[int, str]]) -> None:
    """Fill the places of a row into which cells of rows above reach down."""
    while (left := spans.get(len(row))) is not None:
        down, text = left
        if down > 1:
            spans[len(row)] = (down - 1, text)
        else:
            del spans[len(row)]
        row.append(text)
