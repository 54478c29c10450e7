"""Word documents: every text that the page shows, by the structure of the file rather than by its namespaces.

Elements are told by their local names, so that transitional, strict and vendor namespaces read alike. What was deleted
while changes were tracked, and the older of two forms of one drawing, is not shown and not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from string import ascii_lowercase
from typing import Final, NamedTuple

from spanforge.reference._extras import Untyped
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.archive import Archive, attribute, local, nearest, texts
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.tree import Block, cell, markdown, one_line, table, whole_number

_UNSEEN: Final = frozenset((
    "del", "moveFrom", "instrText", "delText", "delInstrText", "Fallback", "rPr", "tblPr", "sectPr", "tcPr", "trPr",
    "tblGrid", "rubyPr", "sdtPr", "docPartObj",
))  # fmt: skip
_BREAKS: Final = {"tab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": " "}
_HEADING: Final = ("heading ", "überschrift ", "titre ", "título ", "titolo ", "заголовок ")
_NOTES: Final = (("footnotes", "footnote"), ("endnotes", "endnote"), ("comments", "comment"))
_WIDEST: Final = 100
_LEVELS: Final = 9
_OUTLINE: Final = frozenset("012345678")
_LARGEST_ROMAN: Final = 400
_ROMAN: Final = ((100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


class _Style(NamedTuple):
    level: int
    numbering: tuple[str, int] | None


def parse_docx(content: bytes) -> Extract:
    """Return the text as Markdown: headings by level, lists with their numbers, table rows as "column: value" lines.

    Raises:
        ParseError: The file is damaged, encrypted or not a Word document.
    """
    archive = Archive(content)
    main = archive.target("officeDocument") or "word/document.xml"
    document = archive.xml(main)
    if document is None or local(document) != "document":
        raise ParseError("The Word document is damaged, encrypted or not a .docx file.")
    word = _Word(archive, main)
    blocks = [*word.edges("header"), *word.blocks(document), *word.notes(), *word.edges("footer")]
    title, date = archive.properties()
    return Extract([Section(markdown(blocks), "markdown")], title, date, word.texts())


class _Word:
    """Walks the parts of a document."""

    def __init__(self, archive: Archive, main: str) -> None:
        self._archive = archive
        self._main = main
        self._folder = main.rpartition("/")[0]
        self._aside: list[Block] = []
        self._styles = self._read_styles()
        self._formats = self._read_numbering()
        self._counts: Counter[tuple[str, int]] = Counter()

    def blocks(self, parent: Untyped) -> Iterator[Block]:
        """Yield what stands in a body, a cell, a note or a box."""
        for child in parent:
            name = local(child)
            if name == "p":
                yield from self._paragraph(child)
            elif name == "tbl":
                yield from self._table(child)
            elif name not in _UNSEEN:
                yield from self.blocks(child)

    def edges(self, kind: str) -> Iterator[Block]:
        """Yield what the headers or the footers of the pages say, each once."""
        seen: set[str] = set()
        for name in self._archive.names(f"{self._folder}/{kind}"):
            part = self._archive.xml(name)
            for block in self.blocks(part) if part is not None else ():
                if block.text not in seen:
                    seen.add(block.text)
                    yield block

    def notes(self) -> Iterator[Block]:
        """Yield foot- and endnotes, and comments, by their numbers."""
        for part, kind in _NOTES:
            root = self._archive.xml(f"{self._folder}/{part}.xml")
            notes = [] if root is None else [one for one in root if local(one) == kind and not attribute(one, "type")]
            for number, note in enumerate(notes, 1):
                for place, block in enumerate(self.blocks(note)):
                    yield block._replace(text=f"[{number}] {block.text}") if place == 0 else block

    def texts(self) -> Iterator[str]:
        """Yield the text nodes of all parts that a reader sees."""
        names = [self._main, *(f"{self._folder}/{part}.xml" for part, _ in _NOTES)]
        names += [name for kind in ("header", "footer") for name in self._archive.names(f"{self._folder}/{kind}")]
        return (text for name in names for text in texts(self._archive.xml(name), _UNSEEN, within="t"))

    def _paragraph(self, node: Untyped) -> Iterator[Block]:
        text = self._text(node).strip()
        if text:
            yield self._as(node, text)
        aside, self._aside = self._aside, []
        yield from aside

    def _text(self, node: Untyped) -> str:
        pieces: list[str] = []
        for child in node:
            name = local(child)
            if name in {"t", "sym"}:
                pieces.append(child.text or "")
            elif name in _BREAKS:
                pieces.append(_BREAKS[name])
            elif name == "txbxContent":
                self._aside += list(self.blocks(child))
            elif name == "pPr" or name in _UNSEEN:
                continue
            elif name in {"num", "den", "deg"}:
                pieces.append(f"{self._text(child)}{'/' if name == 'num' else ''}")
            else:
                pieces.append(self._text(child))
        return "".join(pieces)

    def _as(self, node: Untyped, text: str) -> Block:
        said = next((one for one in node if local(one) == "pPr"), None)
        marks = {} if said is None else {local(one): one for one in said}
        style = self._styles.get(attribute(marks.get("pStyle"), "val"), _Style(0, None))
        level = _outline(marks) or style.level
        if level:
            return Block(one_line(text), "heading", level)
        numbering = _numbering(marks.get("numPr")) or style.numbering
        if numbering is None or numbering[0] == "0":
            return Block(text)
        return Block(text, "item", min(numbering[1], _LEVELS - 1), self._mark(*numbering))

    def _mark(self, number: str, depth: int) -> str:
        kind, start, pattern = self._formats.get((number, depth), ("bullet", 1, ""))
        if kind in {"bullet", "none"}:
            return "-"
        self._counts[number, depth] += 1
        for deeper in range(depth + 1, _LEVELS):
            self._counts.pop((number, deeper), None)
        for place in range(depth + 1):
            form, first, _ = self._formats.get((number, place), ("decimal", 1, ""))
            value = first + max(0, self._counts[number, place] - 1)
            pattern = pattern.replace(f"%{place + 1}", _spelled(value, form))
        return pattern or f"{start + self._counts[number, depth] - 1}."

    def _table(self, node: Untyped) -> Iterator[Block]:
        rows: list[list[str]] = []
        above: list[str] = []
        inner: list[Block] = []
        for row in nearest(node, "tr", _UNSEEN):
            cells: list[str] = []
            for part in nearest(row, "tc", _UNSEEN):
                text, rows_inside = cell(self.blocks(part))
                inner += rows_inside
                said = {local(one): one for facts in part if local(facts) == "tcPr" for one in facts}
                merged = said.get("vMerge")
                if merged is not None and attribute(merged, "val") != "restart" and not text:
                    text = above[len(cells)] if len(cells) < len(above) else ""
                span = attribute(said.get("gridSpan"), "val")
                cells += [text, *[""] * (whole_number(span, least=1, most=_WIDEST) - 1)]
            rows.append(cells)
            above = cells
        yield from table(rows)
        yield from inner

    def _read_styles(self) -> dict[str, _Style]:
        root = self._archive.xml(f"{self._folder}/styles.xml")
        styles: dict[str, _Style] = {}
        for style in root if root is not None else ():
            parts = {local(one): one for one in style}
            name = attribute(parts.get("name"), "val").lower()
            level = next((whole_number(name[len(one) :], most=_LEVELS) for one in _HEADING if name.startswith(one)), 0)
            inner = {local(one): one for one in parts.get("pPr", ())}
            level = level or _outline(inner)
            numbering = _numbering(inner.get("numPr"))
            bullet = ("style", 0) if name.startswith("list bullet") else None
            styles[attribute(style, "styleId")] = _Style(1 if name == "title" else level, numbering or bullet)
        return styles

    def _read_numbering(self) -> dict[tuple[str, int], tuple[str, int, str]]:
        root = self._archive.xml(f"{self._folder}/numbering.xml")
        if root is None:
            return {}
        levels = {attribute(one, "abstractNumId"): one for one in root if local(one) == "abstractNum"}
        formats: dict[tuple[str, int], tuple[str, int, str]] = {}
        for number in (one for one in root if local(one) == "num"):
            named = next((attribute(one, "val") for one in number if local(one) == "abstractNumId"), "")
            for level in (one for one in levels.get(named, ()) if local(one) == "lvl"):
                said = {local(one): attribute(one, "val") for one in level}
                depth, start = attribute(level, "ilvl"), said.get("start", "1")
                formats[attribute(number, "numId"), int(depth) if depth.isdecimal() else 0] = (
                    said.get("numFmt", "decimal"), int(start) if start.isdecimal() else 1, said.get("lvlText", ""),
                )  # fmt: skip
        return formats


def _numbering(node: Untyped) -> tuple[str, int] | None:
    said = {} if node is None else {local(one): attribute(one, "val") for one in node}
    depth = said.get("ilvl", "0")
    return (said["numId"], int(depth) if depth.isdecimal() else 0) if said.get("numId") else None


def _outline(said: dict[str, Untyped]) -> int:
    """Return the level that a paragraph has in the outline, 0 for body text."""
    level = attribute(said.get("outlineLvl"), "val")
    return int(level) + 1 if level in _OUTLINE else 0


def _spelled(value: int, form: str) -> str:
    text = str(value)
    if form.endswith("Letter") and 0 < value <= len(ascii_lowercase):
        text = ascii_lowercase[value - 1]
    elif form.endswith("Roman") and 0 < value < _LARGEST_ROMAN:
        text = _roman(value)
    return text.upper() if form.startswith("upper") else text


def _roman(value: int) -> str:
    text = ""
    for size, sign in _ROMAN:
        text += sign * (value // size)
        value %= size
    return text
