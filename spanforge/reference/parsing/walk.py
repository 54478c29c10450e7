"""One walk through the parts of every document of XML: paragraphs, tables, and what stands aside of a paragraph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import ClassVar, Final, NamedTuple

from spanforge.reference._extras import Untyped
from spanforge.reference.parsing.archive import local, nearest
from spanforge.reference.parsing.tree import Block, cell, table

_PROPERTIES: Final = "Pr"
"""How the names of elements end that say how others look, and hold no text."""
_BEHIND: Final = {"num": "/"}
"""What is read behind an element: a fraction is written in one line."""
ROWS: Final = frozenset({"tr", "table-row"})
CELLS: Final = frozenset({"tc", "table-cell", "covered-table-cell"})


Places = tuple[tuple[float, float], tuple[float, float]]
"""Where a shape begins and ends down a slide, then across it."""


_LENGTH: Final = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)([a-z]*)")
_POINTS: Final = {"": 1 / 12_700, "pt": 1.0, "in": 72.0, "cm": 72 / 2.54, "mm": 7.2 / 2.54, "pc": 12.0, "pi": 12.0}
"""Points of each unit; where Office names none, it counts in English Metric Units (ECMA-376, part 1, 20.1.10.16)."""


class Placed(NamedTuple):
    """A shape on a slide, and where it stands."""

    places: Places
    shape: Untyped


def length(said: str) -> float | None:
    """Return a length in points; None for what is none."""
    match = _LENGTH.fullmatch(said)
    return float(match[1]) * _POINTS[match[2]] if match and match[2] in _POINTS else None


def reading_order(shapes: Sequence[Placed], way: int = 0) -> list[Untyped]:
    """Return shapes as they are read: row by row, from the left in each, and from above what stands in one column."""
    bands: list[list[Placed]] = []
    for one in sorted(shapes, key=lambda shape: shape.places[way]):
        start, end = one.places[way]
        begin, until = bands[-1][0].places[way] if bands else (end, end)
        if min(end, until) - max(start, begin) > min(end - start, until - begin) / 2:
            bands[-1].append(one)
        else:
            bands.append([one])
    if len(shapes) == 1 or (way and len(bands) == 1):
        return [one.shape for one in sorted(shapes, key=lambda shape: shape.places)]
    return list(chain.from_iterable(reading_order(band, 1 - way) for band in bands))


class Walk:
    """Walks elements by their names; each format says what its names mean.

    Attributes:
        spoken: Elements whose own text is read; empty where all text is.
        instead: What is read in place of an element.
        aside: Elements in a paragraph that stand after it.
        readers: What reads an element that is a block; any other one is looked through.
    """

    spoken: ClassVar[frozenset[str]] = frozenset({"t"})
    instead: ClassVar[dict[str, str]]
    aside: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self._spoken = [f"{{*}}{name}" for name in self.spoken]
        self.readers: dict[str, Callable[[Untyped], list[Block]]] = {
            "p": self.paragraph, "tbl": self.table, "table": self.table,
        }  # fmt: skip

    def blocks(self, parent: Untyped) -> list[Block]:
        """Return what stands in a body, a cell, an item, a note or a box."""
        found: list[Block] = []
        for child in self.inside(parent) if parent is not None else ():
            name = local(child)
            if not name.endswith(_PROPERTIES):
                found += self.readers.get(name, self.blocks)(child)
        return found

    def inside(self, parent: Untyped) -> Iterable[Untyped]:
        """Return what is in an element, in the order in which it is read."""
        return parent

    def block(self, node: Untyped, text: str) -> Block:
        """Return a paragraph as what it is."""
        del node
        return Block(text)

    def columns(self, node: Untyped, text: str, above: Sequence[str]) -> list[str]:
        """Return what a cell says in each column that it stands in, below cells of the row above."""
        del node, above
        return [text]

    def before(self, row: Untyped) -> list[str]:
        """Return the columns that a row leaves out before its first cell."""
        del row
        return []

    def paragraph(self, node: Untyped) -> list[Block]:
        """Return a paragraph, and what stands aside of it."""
        aside: list[Block] = []
        text = self._text(node, aside).strip()
        return [self.block(node, text), *aside] if text else aside

    def table(self, node: Untyped) -> list[Block]:
        """Return the rows of a table, and behind each those of the tables in its cells."""
        rows, inside = self.rows(node)
        return list(table(rows, inside=inside))

    def rows(self, node: Untyped) -> tuple[list[list[str]], list[list[Block]]]:
        """Return the cells of each row of a table, and what stands in tables within them."""
        rows: list[list[str]] = []
        inside: list[list[Block]] = []
        for row in nearest(node, ROWS):
            above = rows[-1] if rows else []
            rows.append(self.before(row))
            inside.append([])
            for part in nearest(row, CELLS):
                text, rows_inside = cell(self.blocks(part))
                inside[-1] += rows_inside
                rows[-1] += self.columns(part, text, above[len(rows[-1]) :])
            again = self.again(row) if any(rows[-1]) else 0
            rows += rows[-1:] * again
            inside += [[]] * again
        return rows, inside

    def again(self, row: Untyped) -> int:
        """Return how often more a row stands there."""
        del row
        return 0

    def texts(self, root: Untyped) -> Iterator[str]:
        """Yield the text nodes of a part, whatever the walk makes of them."""
        if root is None:
            return iter(())
        return (node.text or "" for node in root.iter(*self._spoken)) if self.spoken else root.itertext()

    def _text(self, node: Untyped, aside: list[Block]) -> str:
        pieces = [node.text or ""] if not self.spoken or local(node) in self.spoken else []
        for child in node:
            name = local(child)
            if name in self.aside:
                aside += self.readers.get(name, self.blocks)(child)
            elif not name.endswith(_PROPERTIES):
                pieces += [self.instead.get(name) or self._text(child, aside), _BEHIND.get(name, "")]
            if child.tail and not self.spoken:
                pieces.append(child.tail)
        return "".join(pieces)
