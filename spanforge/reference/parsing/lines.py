"""Lines of a page, from runs of letters in their places, and without what the paper says on every page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from spanforge.reference.parsing.coding import normal

_SAME_LINE: Final = 0.5
"""Share of their heights that two runs on one line have in common."""
_EDGE_LINES: Final = 2
_FEWEST_PAGES: Final = 3
"""Pages on which a line at the edge says the same, from which on it belongs to the paper and not to the text."""
_MARK: Final = re.compile(
    r"[\u2022\u25aa\u25cf\u25e6\u2023\u2043\uf0b7\u00b7*\u2013\u2014-]|\(?\w{1,4}[.)]|(?:\u00a7 ?)?\d+(?:\.\d+)*"
)
_FEWEST_WORDS: Final = 3
"""Words beside a number, from which on it counts an item rather than stands in a table."""
_NUMBER: Final = re.compile(r"\d+|\b[ivxlc]+\b")
_ROMAN: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_LONGEST_NUMBER: Final = 9
ENDED: Final = re.compile(r"[.!?:;\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")


class Segment(NamedTuple):
    """A run of text in its box, in points from the lower left."""

    left: float
    bottom: float
    right: float
    top: float
    text: str

    @property
    def height(self) -> float:
        """Height of the box, never 0."""
        return max(1.0, self.top - self.bottom)

    def overlap(self, other: Segment) -> float:
        """Return which share of the lower box's height both have in common."""
        shared = min(self.top, other.top) - max(self.bottom, other.bottom)
        return shared / min(self.height, other.height)

    def goes_on_with(self, other: Segment) -> bool:
        """Tell whether another run stands right behind this one, nearer than a letter is high."""
        near = -_SAME_LINE * self.height < other.left - self.right < max(self.height, other.height)
        return near and self.overlap(other) > _SAME_LINE

    def joined(self, other: Segment, between: str) -> Segment:
        """Return both as one."""
        text = f"{self.text}{between}{other.text}"
        return Segment(
            min(self.left, other.left), min(self.bottom, other.bottom), max(self.right, other.right),
            max(self.top, other.top), text,
        )  # fmt: skip

    def cleaned(self) -> Segment:
        """Return it with its text in the form that all texts have; halves of one character are put together."""
        whole = self.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return self._replace(text=normal(whole))


Line = list[Segment]


def lines_of(segments: Iterable[Segment]) -> list[Line]:
    """Return lines from the top, each of cells from the left."""
    lines: list[Line] = []
    for one in sorted(segments, key=lambda s: -(s.top + s.bottom)):
        near = next((line for line in lines[-3:] if any(one.overlap(cell) > _SAME_LINE for cell in line)), None)
        if near is None:
            lines.append([one])
        else:
            near.append(one)
    return [_cells(line) for line in lines]


def _cells(line: Line) -> Line:
    cells: Line = []
    for one in sorted(line):
        if cells and cells[-1].goes_on_with(one):
            close = one.left - cells[-1].right < 0.15 * cells[-1].height
            cells[-1] = cells[-1].joined(one, "" if close else " ")
        else:
            cells.append(one)
    is_item = len(cells) == len(("mark", "text")) and _MARK.fullmatch(cells[0].text)
    is_item = is_item and len(cells[1].text.split()) >= (1 if cells[0].text[-1] in ".)" else _FEWEST_WORDS)
    return [cells[0].joined(cells[1], " ")] if is_item and cells[1].text[:1].isalpha() else cells


def without_edges(pages: list[list[Line]]) -> list[list[Line]]:
    """Leave out what the paper says at the edge of many pages: page numbers, and what stands there once more.

    A page that says nothing else is left as it is.
    """
    said = {(number, _text(line)) for number, page in enumerate(pages) for line in _edge(page)}
    often = Counter(text for _, text in said)
    in_step = Counter(step for number, text in said for step in _steps(number, text))
    seen: set[str] = set()
    kept: list[list[Line]] = []
    for number, page in enumerate(pages):
        left_out: list[Line] = []
        for line in _edge(page):
            text = _text(line)
            counts_pages = any(in_step[step] >= _FEWEST_PAGES - _is_number(text) for step in _steps(number, text))
            if counts_pages or (text in seen and often[text] >= _FEWEST_PAGES):
                left_out.append(line)
        seen |= {_text(line) for line in _edge(page)}
        kept.append([line for line in page if line not in left_out] or page)
    return kept


def _edge(page: list[Line]) -> list[Line]:
    return page[:_EDGE_LINES] + page[_EDGE_LINES:][-_EDGE_LINES:]


def _text(line: Line) -> str:
    return " ".join(cell.text for cell in line).lower()


def _steps(page: int, text: str) -> set[tuple[str, int, int]]:
    """Return of each number in a line: the line without its numbers, which it is, and how far ahead of the page.

    A number in a sentence counts no pages.
    """
    if ENDED.search(text) and len(text.split()) > _FEWEST_WORDS:
        return set()
    shape = _NUMBER.sub("#", text)
    return {(shape, place, _value(one) - page) for place, one in enumerate(_NUMBER.findall(text))}


def _is_number(text: str) -> bool:
    """Tell whether a line says one number and no word."""
    return len(_NUMBER.findall(text)) == 1 and not any(map(str.isalpha, text))


def _value(number: str) -> int:
    if number.isdecimal():
        return int(number[:_LONGEST_NUMBER])
    digits = [_ROMAN[letter] for letter in number]
    return sum(-one if one < after else one for one, after in pairwise([*digits, 0]))
