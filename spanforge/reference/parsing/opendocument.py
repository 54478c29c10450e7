"""OpenDocument texts and presentations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from spanforge.reference._extras import Untyped
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.archive import Archive, attribute, local, nearest, properties
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.numbering import LEVELS, Level, Numbering, Numbers
from spanforge.reference.parsing.tabular import sections_of
from spanforge.reference.parsing.tree import Block, markdown, one_line, whole_number
from spanforge.reference.parsing.walk import CELLS, ROWS, Placed, Places, Walk, length, reading_order

_UNSEEN: Final = (
    "{*}tracked-changes", "{*}scripts", "{*}font-face-decls", "{*}sequence-decls",
    "{*}bookmark", "{*}binary-data", "{*}page-number", "{*}image", "{http://purl.org/dc/elements/1.1/}*",
)  # fmt: skip
_EDGES: Final = frozenset(f"{edge}{pages}" for edge in ("header", "footer") for pages in ("", "-left", "-first"))
"""What stands at the edge of each page, of those on the left, and of the first."""
_LISTS: Final = frozenset({"list-style", "outline-style"})
_FORMS: Final = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_OUTLINE: Final = "outline of the headings"
_GOES_ON: Final = "goes-on-from-above"
_UNSEEN_INSIDE: Final = (*_UNSEEN, "{*}automatic-styles", "{*}annotation")
_MOST_REPEATED: Final = 20
_MOST_ROWS: Final = 1_000
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
    styles = archive.xml("styles.xml", _UNSEEN)
    edges = list(nearest(styles, _EDGES))
    walk = _Text(archive, [*nearest(styles, _LISTS), *nearest(root, _LISTS)])
    for part in (root, *edges):
        _show(part)
    blocks = [*{block.text: block for edge in edges for block in walk.blocks(edge)}.values(), *walk.blocks(root)]
    nodes = (text for one in (*edges, root) for text in walk.texts(one))
    return Extract([Section(markdown(blocks), "markdown")], *properties(archive.xml("meta.xml")), nodes)


def parse_open_sheets(content: bytes) -> Extract:
    """Return the rows of every sheet that is not hidden, under its name, with numbers and dates as they are shown.

    Raises:
        ParseError: The workbook is damaged, encrypted or not an OpenDocument file.
    """
    archive = Archive(content)
    root = archive.xml("content.xml", (*_UNSEEN, "{*}annotation", "{*}shapes"))
    if root is None:
        raise ParseError("The workbook is damaged, encrypted or not an OpenDocument file.")
    styles = {attribute(style, "name"): style for style in root.iter("{*}style")}
    sheets = list(nearest(root, {"table"}))
    shown = [sheet for sheet in sheets if not _is_hidden(styles.get(attribute(sheet, "style-name")))]
    walk = _Text(archive, ())
    rows = [
        (attribute(sheet, "name"), [_trimmed([*map(one_line, row)]) for row in walk.rows(sheet)[0]]) for sheet in shown
    ]
    sections = (section for name, cells in rows for section in sections_of(cells, name))
    nodes = (text for sheet in shown for text in walk.texts(sheet))
    hidden = len(sheets) - len(shown)
    warnings = (f"Hidden sheets that were not read: {hidden}.",) if hidden else ()
    return Extract(sections, *properties(archive.xml("meta.xml")), nodes, warnings)


def _is_hidden(style: Untyped) -> bool:
    return style is not None and any(attribute(one, "display") == "false" for one in style)


def _trimmed(row: list[str]) -> list[str]:
    """Return a row up to its last cell that is filled."""
    return row[: max((place for place, said in enumerate(row, 1) if said), default=0)]


def _show(part: Untyped) -> None:
    """Take out what is styled as hidden, and the styles."""
    hidden = {
        attribute(style, "name")
        for style in part.iter("{*}style")
        if any(attribute(one, "display") == "none" for one in style)
    }
    for span in list(part.iter("{*}span")) if hidden else ():
        if attribute(span, "style-name") in hidden:
            span.text = None
            del span[:]
    for styles in list(part.iter("{*}automatic-styles")):
        styles.getparent().remove(styles)


class _Text(Walk):
    spoken = frozenset()
    instead: ClassVar = {"s": " ", "tab": " ", "line-break": "\n"}
    aside = frozenset({"note", "annotation", "frame", "g", "custom-shape", "rect", "ellipse"})

    def __init__(self, archive: Archive, lists: Iterable[Untyped]) -> None:
        super().__init__()
        self._archive = archive
        self._numbers = Numbers(pair for one in lists for pair in _levels(one))
        self._at: Numbering = Numbering("", -1)
        self.readers |= {
            "object": self._object,
            "h": self.paragraph,
            "desc": self.paragraph,
            "list": self._list,
            "list-item": self._item,
            "list-header": self._item,
        }

    def inside(self, parent: Untyped) -> Iterable[Untyped]:
        if local(parent) not in {"page", "g"}:
            return parent
        titles = [one for one in parent if attribute(one, "class") == "title"]
        notes = [one for one in parent if local(one) == "notes"]
        placed = [Placed(_places(one), one) for one in parent if one not in titles and one not in notes]
        return [*titles, *(reading_order(placed) if placed else ()), *notes]

    def block(self, node: Untyped, text: str) -> Block:
        level = whole_number(attribute(node, "outline-level"), most=_DEEPEST)
        if not level:
            return Block(text)
        at = Numbering(_OUTLINE, level - 1)
        return Block(f"{self._numbers.mark(at)} {text}" if self._numbers.is_counted(at) else text, "heading", level)

    def rows(self, node: Untyped) -> tuple[list[list[str]], list[list[Block]]]:
        open_below: dict[int, int] = {}
        for row in nearest(node, ROWS):
            column = 0
            for one in nearest(row, CELLS):
                open_below[column] = open_below.get(column, 0) - 1
                if open_below[column] > 0 and local(one) == "covered-table-cell":
                    one.set(_GOES_ON, "true")
                else:
                    open_below[column] = whole_number(attribute(one, "number-rows-spanned"), most=_MOST_ROWS)
                column += _repeated(one)
        return super().rows(node)

    def columns(self, node: Untyped, text: str, above: Sequence[str]) -> list[str]:
        goes_on = bool(above) and attribute(node, _GOES_ON)
        return [above[0], *[""] * (_repeated(node) - 1)] if goes_on else [text] * _repeated(node)

    def again(self, row: Untyped) -> int:
        return whole_number(attribute(row, "number-rows-repeated"), least=1, most=_MOST_ROWS) - 1

    def _list(self, node: Untyped) -> list[Block]:
        outer = self._at
        self._at = Numbering(attribute(node, "style-name") or outer.number, outer.depth + 1)
        if not (attribute(node, "continue-numbering") == "true" or attribute(node, "continue-list")):
            self._numbers.restart(self._at.number, self._at.depth)
        blocks = self.blocks(node)
        self._at = outer
        return blocks

    def _item(self, node: Untyped) -> list[Block]:
        at = self._at
        said = attribute(node, "start-value")
        counted = local(node) == "list-item" and any(local(one) in {"p", "h"} for one in node)
        mark = self._numbers.mark(at, int(said) if said.isdecimal() else None) if counted else "-"
        blocks = self.blocks(node)
        if blocks and blocks[0].kind == "paragraph":
            blocks[0] = blocks[0]._replace(kind="item", level=max(0, at.depth), mark=mark)
        return blocks

    def _object(self, node: Untyped) -> list[Block]:
        """Return what a chart or a formula says."""
        part = self._archive.xml(f"{attribute(node, 'href').removeprefix('./')}/content.xml", _UNSEEN_INSIDE)
        if part is None:
            return []
        return [Block("".join(part.itertext()).strip())] if local(part) == "math" else self.blocks(part)


def _repeated(cell: Untyped) -> int:
    return whole_number(attribute(cell, "number-columns-repeated"), least=1, most=_MOST_REPEATED)


def _levels(style: Untyped) -> Iterator[tuple[Numbering, Level]]:
    name = _OUTLINE if local(style) == "outline-style" else attribute(style, "name")
    for level in style:
        said = {key.rpartition("}")[2]: value for key, value in level.attrib.items()}
        depth = whole_number(said.get("level", ""), least=1, most=LEVELS) - 1
        form = _FORMS.get(said.get("num-format", ""), "bullet")
        upper = whole_number(said.get("display-levels", ""), least=1, most=depth + 1)
        numbers = ".".join(f"%{place}" for place in range(depth + 2 - upper, depth + 2))
        pattern = "" if form == "bullet" else f"{said.get('num-prefix', '')}{numbers}{said.get('num-suffix', '')}"
        start = whole_number(said.get("start-value", ""), least=1, most=1_000_000)
        yield Numbering(name, depth), Level(form, start, pattern)


def _places(shape: Untyped) -> Places:
    """Return where a shape stands, or what is grouped in it."""
    x, y, width, height = (length(attribute(shape, name)) for name in ("x", "y", "width", "height"))
    if x is not None and y is not None:
        return (y, y + (height or 0.0)), (x, x + (width or 0.0))
    inner = [_places(one) for one in shape if local(shape) == "g"]
    down, across = zip(*inner, strict=True) if inner else ([(-1.0, -1.0)], [(-1.0, -1.0)])
    return _around(down), _around(across)


def _around(edges: Iterable[tuple[float, float]]) -> tuple[float, float]:
    starts, ends = zip(*edges, strict=True)
    return min(starts), max(ends)
