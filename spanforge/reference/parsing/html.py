"""HTML: all that a reader sees of a page, in the order of the page, but for its navigation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import accumulate
from typing import Final

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.parsing.base import MAX_TEXT_CHARS, Extract, Section, date_of
from spanforge.reference.parsing.coding import decode
from spanforge.reference.parsing.seen import children, texts, unfold
from spanforge.reference.parsing.tree import Block, cell, markdown, one_head, one_line, table, whole_number

_INLINE: Final = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "nobr", "output", "q", "rb", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var", "wbr", "math", "-text", "img", "input", "select", "textarea", "button",
    "br",
))  # fmt: skip
_APART: Final = frozenset({"select", "option", "button", "label", "rt"})
"""Inline elements between which a reader sees a space."""
_SOLID: Final = frozenset({"-text", "select", "button", "br", "img", "input", "textarea", "math"})
"""Inline elements in which no block stands."""
_LEVELS: Final = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6, "summary": 5}
_LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
_SILENT: Final = frozenset({"hidden", "password", "checkbox", "radio", "file", "image", "range", "color"})
"""Kinds of fields whose value nobody reads."""
_DATES: Final = (
    "meta[property='article:modified_time']", "meta[property='article:published_time']", "meta[name='last-modified']",
    "meta[http-equiv='last-modified' i]", "meta[name='dcterms.modified']", "meta[name='date']",
    "meta[name='dcterms.date']", "meta[itemprop='dateModified']", "meta[itemprop='datePublished']",
)  # fmt: skip
_MARK: Final = "\x1f"
"""Ends the line where a `br` stands: no character of a page, which has no controls in it."""
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
    unfold(page)
    title = page.css_first("title")
    name = "" if title is None else one_line(str(title.text()))
    with Translated((RecursionError,), lambda _: ParseError(_TOO_DEEP)):
        blocks, nodes = list(_blocks(children(page.body))), list(texts(page.body))
    return Extract([Section(markdown(blocks), "markdown", heading=name)], name, _date(page), nodes)


def _depth(text: str) -> int:
    """Return how many elements are open at once, at most."""
    return max(accumulate(-1 if tag[1] else 1 for tag in _NESTING.finditer(text)), default=0)


def _blocks(nodes: Iterable[Untyped], depth: int = 0) -> Iterator[Block]:
    """Yield what nodes say: runs of inline content as paragraphs, and each block by its kind."""
    run: list[str] = []
    for node in nodes:
        if node.tag in _INLINE and not _holds_block(node):
            run.append(_inline(node))
            continue
        yield from _paragraph(run)
        run.clear()
        kind = "h1" if node.attributes.get("role") == "heading" else node.tag
        yield from _READERS.get(kind, _looked_through)(node, depth)
    yield from _paragraph(run)


def _looked_through(node: Untyped, depth: int) -> Iterator[Block]:
    return _blocks(children(node), depth)


def _holds_block(node: Untyped) -> bool:
    """Tell whether blocks stand inside an inline element, as where a whole card is a link."""
    return node.tag not in _SOLID and any(child.tag not in _INLINE or _holds_block(child) for child in children(node))


def _inside(node: Untyped) -> str:
    """Return the text of an element in one run."""
    return "".join(map(_inline, children(node)))


def _inline(node: Untyped) -> str:
    """Return the text of an inline element, or of any element in one run."""
    match node.tag:
        case "br":
            return _MARK
        case "-text":
            return str(node.text_content or "")
        case "input":
            shown = (node.attributes.get("type") or "text").lower() not in _SILENT
            text = str(node.attributes.get("value") or node.attributes.get("placeholder") or "") if shown else ""
        case "img":
            text = str(node.attributes.get("alt") or "")
        case tag:
            text = _inside(node)
            if tag in _INLINE and tag not in _APART:
                return text
    return f" {text} " if text.strip() else " "


def _paragraph(run: list[str]) -> Iterator[Block]:
    text = _text("".join(run))
    if text:
        yield Block(text)


def _text(run: str) -> str:
    return "\n".join(filter(None, (one_line(line) for line in run.split(_MARK))))


def _heading(node: Untyped, _depth: int) -> Iterator[Block]:
    level = _LEVELS.get(node.tag) or whole_number(node.attributes.get("aria-level") or "", least=2, most=6)
    yield Block(_text(_inside(node)), "heading", level)


def _code(node: Untyped, _depth: int) -> Iterator[Block]:
    yield Block(str(node.text(deep=True) or ""), "code")


def _list(node: Untyped, depth: int) -> Iterator[Block]:
    start = node.attributes.get("start") or "1"
    number = int(start) if start.lstrip("-").isdecimal() else 1
    for child in children(node):
        is_item = child.tag == "li"
        value = child.attributes.get("value") or ""
        number = int(value) if is_item and value.isdecimal() else number
        blocks = [block for block in _blocks(children(child) if is_item else [child], depth + 1) if block.text]
        if blocks and blocks[0].kind in {"paragraph", "heading"}:
            yield Block(blocks.pop(0).text, "item", depth, f"{number}." if node.tag == "ol" else "-")
        for block in blocks:
            yield Block(block.text, "item", depth + 1, "") if block.kind == "paragraph" else block
        number += is_item


def _definitions(node: Untyped, depth: int) -> Iterator[Block]:
    """Yield what terms mean, each behind its term."""
    term = ""
    for child in _flat_definitions(node):
        if child.tag != "dd":
            yield Block(term, "item", depth)
            term = _text(_inside(child))
            continue
        blocks = list(_blocks(children(child), depth + 1))
        if term and blocks and blocks[0].kind == "paragraph":
            joint = " " if term.endswith((":", "?", ".", "!")) else ": "
            term += f"{joint}{blocks.pop(0).text}"
        yield from (Block(term, "item", depth), *blocks)
        term = ""
    yield Block(term, "item", depth)


def _flat_definitions(node: Untyped) -> Iterator[Untyped]:
    for child in children(node):
        if child.tag == "div":
            yield from _flat_definitions(child)
        elif child.tag != "-text" or str(child.text_content or "").strip():
            yield child


def _table(node: Untyped, depth: int) -> Iterator[Block]:
    spans: dict[int, tuple[int, str]] = {}
    parts = list(_parts(node))
    cells = [[cell for cell in children(part) if cell.tag in {"td", "th"}] for part in parts if part.tag == "tr"]
    layout = _is_layout(node, cells)
    for part in parts:
        if part.tag == "caption" or layout:
            yield from _blocks(children(part), depth)
    if layout:
        return
    inside: list[list[Block]] = [[] for _ in cells]
    rows = [_row(row, spans, inner) for row, inner in zip(cells, inside, strict=True)]
    marked = [bool(row) and all(cell.tag == "th" for cell in row) for row in cells[:3]]
    if marked == [True, True, False]:
        rows[:2], inside[:2] = [one_head(*rows[:2])], [inside[0] + inside[1]]
    head = True if marked[:1] == [True] and len(cells[0]) > 1 else None
    first = [cell.tag for cell in cells[0]] if cells else []
    yield from table(rows, head=False if first == ["th", "td"] else head, inside=inside)


def _parts(node: Untyped) -> Iterator[Untyped]:
    """Yield the rows and captions of a table, not those of a table inside it."""
    for child in children(node):
        if child.tag in {"thead", "tbody", "tfoot"}:
            yield from _parts(child)
        elif child.tag in {"tr", "caption"}:
            yield child


def _is_layout(node: Untyped, rows: list[list[Untyped]]) -> bool:
    """Tell whether a table only places what stands in it: no head, and headings or tables in its cells."""
    cells = [cell for row in rows for cell in row]
    return node.attributes.get("role") in {"presentation", "none"} or (
        all(cell.tag == "td" for cell in cells)
        and any(cell.css_first("h1, h2, h3, h4, table, form") is not None for cell in cells)
    )


def _row(cells: list[Untyped], spans: dict[int, tuple[int, str]], inner: list[Block]) -> list[str]:
    row: list[str] = []
    for node in (*cells, None):
        while len(row) in spans:
            # A cell of a row above reaches down to here.
            down, text = spans.pop(len(row))
            if down > 1:
                spans[len(row)] = down - 1, text
            row.append(text)
        if node is None:
            continue
        text, rows_inside = cell(_blocks(children(node)))
        inner += rows_inside
        spanned = (node.attributes.get(name) or "" for name in ("rowspan", "colspan"))
        down, across = (whole_number(one, least=1, most=100) for one in spanned)
        for said in (text, *[""] * (across - 1)):
            if down > 1:
                spans[len(row)] = down - 1, said
            row.append(said)
    return row


def _date(page: Untyped) -> datetime | None:
    said = (page.css_first(selector) for selector in _DATES)
    dates = (date_of(str(node.attributes.get("content") or "")) for node in said if node is not None)
    return next(filter(None, dates), None)


_READERS: Final[dict[str, Callable[[Untyped, int], Iterator[Block]]]] = {
    **dict.fromkeys(_LEVELS, _heading),
    **dict.fromkeys(_LISTS, _list),
    **dict.fromkeys(("pre", "listing", "xmp", "plaintext"), _code),
    "dl": _definitions,
    "table": _table,
}
