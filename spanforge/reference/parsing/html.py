"""HTML: all that a reader sees of a page, in the order of the page, but for its navigation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import accumulate
from typing import Final

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.base import MAX_TEXT_CHARS, Extract, Section
from spanforge.reference.parsing.coding import decode
from spanforge.reference.parsing.dates import date_of
from spanforge.reference.parsing.page import children, fill, head_of, is_layout, one_head, parts_of, texts
from spanforge.reference.parsing.tree import Block, markdown, one_line, table, whole_number

_INLINE: Final = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "nobr", "output", "q", "rb", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var", "wbr", "math", "-text", "img", "input", "select", "textarea", "button",
    "br",
))  # fmt: skip
_APART: Final = frozenset({"select", "option", "button", "label", "rt"})
"""Inline elements between which a reader sees a space."""
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
_DATES: Final = (
    "meta[property='article:modified_time']", "meta[property='article:published_time']", "meta[name='last-modified']",
    "meta[http-equiv='last-modified' i]", "meta[name='dcterms.modified']", "meta[name='date']",
    "meta[name='dcterms.date']", "meta[itemprop='dateModified']", "meta[itemprop='datePublished']",
)  # fmt: skip
_MARK: Final = "\x1f"
"""Ends the line where a `br` stands: no character of a page, which has no controls in it."""
_INSTEAD: Final = {"br": _MARK, "wbr": ""}
_NESTING: Final = re.compile(
    r"<(/?)(?!(?:p|li|d[dt]|t[dhr]|thead|tbody|tfoot|colgroup|col|opt\w*|r[bpt]|area|base|br|embed|hr|img|input|link|meta"
    r"|param|source|track|wbr)\b)[a-z]", re.IGNORECASE,
)  # fmt: skip
"""Begins or ends an element that nothing but its own end closes."""
_DEEPEST: Final = 5_000
"""Elements open at once, after which a parser's time grows with their square."""
_TOO_DEEP: Final = "The page nests its elements too deeply; flatten it."


def parse_html(content: bytes, charset: str = "") -> Extract:
    """Return a page as Markdown, with its title and date.

    Raises:
        ParseError: The page is too large, or nests its elements too deeply.
    """
    if len(content) > MAX_TEXT_CHARS:
        raise ParseError(f"An HTML page larger than {MAX_TEXT_CHARS} bytes is refused; split it.")
    text = decode(content, charset)
    if _depth(text) > _DEEPEST:
        raise ParseError(_TOO_DEEP)
    page = load("selectolax.lexbor", "reference").LexborHTMLParser(text)
    title = page.css_first("title")
    name = "" if title is None else one_line(str(title.text()))
    blocks, nodes = read_page(page)
    return Extract([Section(markdown(blocks), "markdown", heading=name)], name, _date(page), nodes)


def read_page(page: Untyped) -> tuple[list[Block], list[str]]:
    """Return a parsed page in blocks, and its visible text nodes.

    Raises:
        ParseError: It nests its elements too deeply.
    """
    if page.body is None:
        return [], []
    with Translated((RecursionError,), lambda _: ParseError(_TOO_DEEP)):
        return list(_Page().blocks(page.body)), list(texts(page.body))


def _depth(text: str) -> int:
    """Return how many elements are open at once, at most."""
    return max(accumulate(-1 if tag[1] else 1 for tag in _NESTING.finditer(text)), default=0)


class _Page:
    """Walks a page, each element by what it is."""

    def blocks(self, parent: Untyped, depth: int = 0) -> Iterator[Block]:
        """Yield what stands in an element: runs of inline content as paragraphs, and each block by its kind."""
        run: list[str] = []
        for node in children(parent):
            if node.tag in _INLINE and not _holds_block(node):
                run.append(self.inline(node))
                continue
            yield from _paragraph(run)
            run.clear()
            yield from self._block(node, depth)
        yield from _paragraph(run)

    def _block(self, node: Untyped, depth: int) -> Iterator[Block]:
        tag = node.tag
        if tag in _HEADINGS or node.attributes.get("role") == "heading":
            level = _HEADINGS.get(tag) or whole_number(node.attributes.get("aria-level") or "", least=2, most=6)
            yield Block(_text(self.inside(node)), "heading", level)
        elif tag in _LISTS:
            yield from self._list(node, depth, ordered=tag == "ol")
        elif tag == "dl":
            yield from self._definitions(node, depth)
        elif tag == "table":
            yield from self._table(node)
        elif tag in {"pre", "listing", "xmp", "plaintext"}:
            yield Block(str(node.text(deep=True) or ""), "code")
        elif tag in {"summary", "legend", "caption"}:
            yield Block(_text(self.inside(node)), "heading", 5) if tag == "summary" else Block(_text(self.inside(node)))
        else:
            yield from self.blocks(node, depth)

    def _list(self, node: Untyped, depth: int, *, ordered: bool) -> Iterator[Block]:
        start = node.attributes.get("start") or "1"
        number = int(start) if start.lstrip("-").isdecimal() else 1
        for child in children(node):
            if child.tag in _LISTS:
                yield from self._list(child, depth + 1, ordered=child.tag == "ol")
                continue
            value = child.attributes.get("value") or ""
            number = int(value) if child.tag == "li" and value.isdecimal() else number
            inner = self.blocks(child, depth + 1) if child.tag != "-text" else iter([Block(self.inline(child))])
            yield from _item(inner, depth, f"{number}." if ordered else "-")
            number += child.tag == "li"

    def _definitions(self, node: Untyped, depth: int) -> Iterator[Block]:
        term = ""
        for child in _flat_definitions(node):
            if child.tag == "dd":
                yield from _defined(term, self.blocks(child, depth + 1), depth)
                term = ""
                continue
            if term:
                yield Block(term, "item", depth)
            term = _text(self.inside(child))
        if term:
            yield Block(term, "item", depth)

    def _table(self, node: Untyped) -> Iterator[Block]:
        rows: list[list[str]] = []
        aside: list[Block] = []
        spans: dict[int, tuple[int, str]] = {}
        marked: list[bool] = []
        head: bool | None = None
        parts = list(parts_of(node))
        layout = node.attributes.get("role") in {"presentation", "none"} or is_layout(parts)
        for part in parts:
            if part.tag != "tr":
                yield from _paragraph([self.inside(part)])
                continue
            if layout:
                for cell in children(part):
                    yield from self.blocks(cell) if cell.tag not in _INLINE else _paragraph([self.inline(cell)])
                continue
            cells = [cell for cell in children(part) if cell.tag in {"td", "th"}]
            head = head if rows else head_of(cells)
            marked.append(all(cell.tag == "th" for cell in cells))
            rows.append(self._row(cells, spans, aside))
        yield from table(one_head(rows, marked), head=head)
        yield from aside

    def _row(self, cells: list[Untyped], spans: dict[int, tuple[int, str]], aside: list[Block]) -> list[str]:
        row: list[str] = []
        for cell in cells:
            fill(row, spans)
            blocks = list(self.blocks(cell))
            own = [block for block in blocks if block.kind != "row"]
            aside += [block for block in blocks if block.kind == "row"]
            text = _joined(own)
            down, across = (
                whole_number(cell.attributes.get(name) or "", least=1, most=100) for name in ("rowspan", "colspan")
            )
            for place in range(across):
                if down > 1:
                    spans[len(row)] = (down - 1, text if place == 0 else "")
                row.append(text if place == 0 else "")
        fill(row, spans)
        return row

    def inside(self, node: Untyped) -> str:
        """Return the text of an element in one run."""
        return "".join(self.inline(child) for child in children(node))

    def inline(self, node: Untyped) -> str:
        """Return the text of an inline element, or of any element in one run."""
        tag = node.tag
        if tag in _INSTEAD:
            return _INSTEAD[tag]
        if tag == "-text":
            return str(node.text_content or "")
        if tag in {"input", "img"}:
            return _spaced(_value(node) if tag == "input" else node.attributes.get("alt") or "")
        inside = self.inside(node)
        return inside if tag in _INLINE and tag not in _APART else _spaced(inside)


def _holds_block(node: Untyped) -> bool:
    """Tell whether blocks stand inside an inline element, as where a whole card is a link."""
    if node.tag in {"-text", "select", "button", "br", "img", "input", "textarea", "math"}:
        return False
    return any(child.tag not in _INLINE or _holds_block(child) for child in children(node))


def _flat_definitions(node: Untyped) -> Iterator[Untyped]:
    for child in children(node):
        if child.tag == "div":
            yield from _flat_definitions(child)
        elif child.tag != "-text" or str(child.text_content or "").strip():
            yield child


def _spaced(text: str) -> str:
    return f" {text} " if text.strip() else " "


def _value(node: Untyped) -> str:
    kind = (node.attributes.get("type") or "text").lower()
    if kind in {"hidden", "password", "checkbox", "radio", "file", "image", "range", "color"}:
        return ""
    return str(node.attributes.get("value") or node.attributes.get("placeholder") or "")


def _paragraph(run: list[str]) -> Iterator[Block]:
    text = _text("".join(run))
    if text:
        yield Block(text)


def _text(run: str) -> str:
    return "\n".join(filter(None, (one_line(line) for line in run.split(_MARK))))


def _item(inner: Iterator[Block], depth: int, mark: str) -> Iterator[Block]:
    blocks = [block for block in inner if block.text]
    if not blocks:
        return
    if blocks[0].kind in {"paragraph", "heading"}:
        yield Block(blocks[0].text, "item", depth, mark)
        blocks = blocks[1:]
    for block in blocks:
        yield Block(block.text, "item", depth + 1, "") if block.kind == "paragraph" else block


def _defined(term: str, blocks: Iterator[Block], depth: int) -> Iterator[Block]:
    """Yield what a term means, behind the term."""
    joint = " " if term.endswith((":", "?", ".", "!")) else ": "
    for place, block in enumerate(blocks):
        if place or not term:
            yield block
        elif block.kind == "paragraph":
            yield Block(f"{term}{joint}{block.text}", "item", depth)
        else:
            yield from (Block(term, "item", depth), block)


def _joined(blocks: list[Block]) -> str:
    """Return what stands in a cell as one line; the items of a list are kept apart."""
    return one_line(
        ", ".join(block.text.rstrip(",") for block in blocks)
        if all(block.kind == "item" for block in blocks)
        else " ".join(block.text for block in blocks)
    )


def _date(page: Untyped) -> datetime | None:
    for selector in _DATES:
        node = page.css_first(selector)
        if node is not None and (date := date_of(str(node.attributes.get("content") or ""))):
            return date
    return None
