"""Word documents: every text that the page shows, by the structure of the file.

What was deleted while changes were tracked, and the older of two forms of one drawing, is not shown and not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

from spanforge.reference._extras import Untyped
from spanforge.reference.failures import ParseError
from spanforge.reference.parsing.archive import Archive, attribute, local, nearest, parts, properties
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.charts import chart
from spanforge.reference.parsing.numbering import LEVELS, Level, Numbering, Numbers
from spanforge.reference.parsing.tree import Block, markdown, whole_number
from spanforge.reference.parsing.walk import Walk

_UNSEEN: Final = (
    "{*}del", "{*}moveFrom", "{*}instrText", "{*}delText", "{*}delInstrText", "{*}Fallback", "{*}docPartObj",
)  # fmt: skip
_UNREAD: Final = frozenset({"chartEx", "aFChunk"})
_OFF: Final = frozenset({"0", "false", "off"})
_HEADING: Final = ("heading ", "überschrift ", "titre ", "título ", "titolo ", "заголовок ")
_NOTES: Final = (("footnotes", "footnote"), ("endnotes", "endnote"), ("comments", "comment"))
_WIDEST: Final = 100


def parse_docx(content: bytes) -> Extract:
    """Return the text as Markdown: headings by level, lists with their numbers, table rows as "column: value" lines.

    Raises:
        ParseError: The file is damaged, encrypted or not a Word document.
    """
    archive = Archive(content)
    main = archive.main("word/document.xml")
    document = _shown(archive, main)
    if document is None or local(document) != "document":
        raise ParseError("The Word document is damaged, encrypted or not a .docx file.")
    folder = main.rpartition("/")[0]
    relations = archive.relations(main)

    def part(key: str) -> Untyped:
        return archive.xml(relations[key][1]) if key in relations else None

    word = _Word(archive.xml(f"{folder}/styles.xml"), archive.xml(f"{folder}/numbering.xml"), part)
    headers = [_shown(archive, one) for one in archive.names(f"{folder}/header")]
    footers = [_shown(archive, one) for one in archive.names(f"{folder}/footer")]
    notes = [(_shown(archive, f"{folder}/{part}.xml"), kind) for part, kind in _NOTES]
    blocks = [*word.edges(headers), *word.blocks(document)]
    blocks += (block for root, kind in notes for block in word.notes(root, kind))
    blocks += word.edges(footers)
    nodes = (text for root in (document, *(root for root, _ in notes), *headers, *footers) for text in word.texts(root))
    unread = sum(kind in _UNREAD for kind, _ in relations.values())
    warnings = (f"Charts and inserted files that were not read: {unread}.",) if unread else ()
    return Extract(
        [Section(markdown(blocks), "markdown")], *properties(archive.xml("docProps/core.xml")), nodes, warnings
    )


class _Word(Walk):
    instead: ClassVar = {"tab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": " "}
    aside = frozenset({"txbxContent", "chart", "relIds"})

    def __init__(self, styles: Untyped, numbering: Untyped, part: Callable[[str], Untyped]) -> None:
        super().__init__()
        self._styles = {attribute(one, "styleId"): _style(one) for one in nearest(styles, {"style"})}
        self._numbers = Numbers(_levels(numbering))
        self._part = part
        self.readers |= {"chart": self._chart, "relIds": self._diagram}

    def edges(self, roots: Sequence[Untyped]) -> list[Block]:
        """Return what the headers or the footers of the pages say, each once."""
        return list({block.text: block for root in roots for block in self.blocks(root)}.values())

    def notes(self, root: Untyped, kind: str) -> Iterator[Block]:
        """Yield foot- and endnotes, or comments, by their numbers."""
        notes = [one for one in nearest(root, {kind}) if not attribute(one, "type")]
        for number, note in enumerate(notes, 1):
            for place, block in enumerate(self.blocks(note)):
                yield block if place else block._replace(text=f"[{number}] {block.text}")

    def block(self, node: Untyped, text: str) -> Block:
        said = parts(parts(node).get("pPr"))
        level, numbering = self._styles.get(attribute(said.get("pStyle"), "val"), (0, None))
        level = _outline(said) or level
        numbering = _numbering(said) or numbering
        if level:
            counts = numbering is not None and self._numbers.is_counted(numbering)
            return Block(f"{self._numbers.mark(numbering)} {text}" if numbering and counts else text, "heading", level)
        if numbering is None or numbering.number == "0":
            return Block(text)
        return Block(text, "item", numbering.depth, self._numbers.mark(numbering))

    def _chart(self, node: Untyped) -> list[Block]:
        return list(chart(self._part(attribute(node, "id"))))

    def _diagram(self, node: Untyped) -> list[Block]:
        return self.blocks(self._part(attribute(node, "dm")))

    def columns(self, node: Untyped, text: str, above: Sequence[str]) -> list[str]:
        said = parts(parts(node).get("tcPr"))
        goes_on = "vMerge" in said and attribute(said["vMerge"], "val") != "restart"
        span = whole_number(attribute(said.get("gridSpan"), "val"), least=1, most=_WIDEST)
        return [text or (above[0] if goes_on and above else ""), *[""] * (span - 1)]

    def before(self, row: Untyped) -> list[str]:
        left_out = parts(parts(row).get("trPr")).get("gridBefore")
        return [""] * whole_number(attribute(left_out, "val"), most=_WIDEST)


def _shown(archive: Archive, name: str) -> Untyped:
    """Return the root of a part without what nobody sees."""
    root = archive.xml(name, _UNSEEN)
    for mark in list(root.iter("{*}vanish")) if root is not None else ():
        run = mark.getparent().getparent()
        if local(run) == "r" and attribute(mark, "val") not in _OFF:
            run.getparent().remove(run)
    return root


def _style(style: Untyped) -> tuple[int, Numbering | None]:
    said = parts(style)
    name, inner = attribute(said.get("name"), "val").lower(), parts(said.get("pPr"))
    level = next((whole_number(name[len(one) :], most=LEVELS) for one in _HEADING if name.startswith(one)), 0)
    bullet = Numbering("style", 0) if name.startswith("list bullet") else None
    return 1 if name == "title" else level or _outline(inner), _numbering(inner) or bullet


def _levels(root: Untyped) -> Iterator[tuple[Numbering, Level]]:
    kinds = {attribute(one, "abstractNumId"): one for one in nearest(root, {"abstractNum"})}
    for number in nearest(root, {"num"}):
        kind = attribute(parts(number).get("abstractNumId"), "val")
        for level in nearest(kinds.get(kind), {"lvl"}):
            said = {name: attribute(one, "val") for name, one in parts(level).items()}
            at = Numbering(attribute(number, "numId"), whole_number(attribute(level, "ilvl"), most=LEVELS - 1))
            start = whole_number(said.get("start", "1"), most=1_000_000)
            yield at, Level(said.get("numFmt", "decimal"), start, said.get("lvlText", ""))


def _numbering(said: dict[str, Untyped]) -> Numbering | None:
    marks = {name: attribute(one, "val") for name, one in parts(said.get("numPr")).items()}
    depth = whole_number(marks.get("ilvl", ""), most=LEVELS - 1)
    return Numbering(marks["numId"], depth) if marks.get("numId") else None


def _outline(said: dict[str, Untyped]) -> int:
    """Return the level that a paragraph has in the outline, 0 for body text."""
    level = attribute(said.get("outlineLvl"), "val")
    return int(level) + 1 if level in set("012345678") else 0
