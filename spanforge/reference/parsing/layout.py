"""From places on pages to text: lines, columns, tables and paragraphs, in the order in which they are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from spanforge.reference.parsing.coding import normal
from spanforge.reference.parsing.tree import Block, table

_SAME_LINE: Final = 0.5
"""Share of their heights that two runs on one line have in common."""
_GUTTER: Final = 6.0
"""Points between two columns at least."""
_PROSE: Final = 3.5
"""Words in a cell on average, from which on columns are text rather than a table."""
_FEWEST_LINES: Final = 3
_EDGE_LINES: Final = 2
_FEWEST_PAGES: Final = 3
"""Pages on which a line at the edge says the same, from which on it belongs to the paper and not to the text."""
_NEW_PARAGRAPH: Final = 1.7
"""Heights between two lines, from which on another paragraph begins."""
_ITEM: Final = re.compile(
    r"(?P<mark>[\u2022\u25aa\u25cf\u25e6\u2023\u2043\uf0b7\u00b7*\u2013\u2014-]|\(?\w{1,2}[.)]) +(?=\S)"
)
_ENDED: Final = re.compile(r"[.!?:;\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")
_FIRST_SENTENCE: Final = re.compile(r".*?(?:[.!?][\"'\u201d\u2019)\]]*(?=\s|$)|[\u3002\uff01\uff1f])", re.DOTALL)
_CJK: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_NUMBER: Final = re.compile(r"\d+|\b[ivxlc]+\b")
_ROMAN: Final = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_LONGEST_NUMBER: Final = 9


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


def pages_of(pages: Sequence[Sequence[Segment]]) -> list[list[Block]]:
    """Return the text of each page in blocks; a sentence that goes on over a page stands whole on the first."""
    lined = _without_edges([lines_of(page) for page in pages])
    words = Counter(re.findall(r"\w+-\w+", " ".join(cell.text for page in lined for line in page for cell in line)))
    read = [list(_blocks(lines, words)) for lines in lined]
    for above, below in pairwise(read):
        _carry_over(above, below, words)
    return read


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
    return cells


def _without_edges(pages: list[list[Line]]) -> list[list[Line]]:
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
            counts_pages = any(in_step[step] >= _FEWEST_PAGES for step in _steps(number, text))
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
    """Return of each number in a line: the line without its numbers, which it is, and how far ahead of the page."""
    shape = _NUMBER.sub("#", text)
    return {(shape, place, _value(one) - page) for place, one in enumerate(_NUMBER.findall(text))}


def _value(number: str) -> int:
    if number.isdecimal():
        return int(number[:_LONGEST_NUMBER])
    digits = [_ROMAN[letter] for letter in number]
    return sum(-one if one < after else one for one, after in pairwise([*digits, 0]))


def _blocks(lines: list[Line], words: Counter[str]) -> Iterator[Block]:
    for group, gutters in _groups(lines):
        places = range(len(gutters) + 1)
        split = [[[cell for cell in line if _column(cell, gutters) == one] for one in places] for line in group]
        cells = [cell for line in group for cell in line]
        prose = sum(len(cell.text.split()) + len(_CJK.findall(cell.text)) / 2 for cell in cells) / len(cells)
        if gutters and (prose < _PROSE or len(group) < _FEWEST_LINES):
            yield from _table(split)
        else:
            for column in zip(*split, strict=True):
                yield from _paragraphs([_whole(cells) for cells in column if cells], words)


def _groups(lines: list[Line]) -> Iterator[tuple[list[Line], list[float]]]:
    """Yield lines that share gutters, with the middle of each gutter; lines without any share that."""
    group: list[Line] = []
    gaps: list[tuple[float, float]] = []
    for line in lines:
        own = _gaps(line)
        shared = _shared(gaps, own)
        before, inner = _inner(group, gaps), _inner([*group, line], shared)
        if len(group) > 1 and bool(before) != bool(inner):
            yield group, before
            group, shared = [], own
        elif not (before or inner):
            shared = own
        group, gaps = [*group, line], shared
    if group:
        yield group, _inner(group, gaps)


def _gaps(line: Line) -> list[tuple[float, float]]:
    edges = [(-1e9, -1e9), *((cell.left, cell.right) for cell in line), (1e9, 1e9)]
    return [(a[1], b[0]) for a, b in pairwise(edges) if b[0] - a[1] >= _GUTTER]


def _shared(some: list[tuple[float, float]], others: list[tuple[float, float]]) -> list[tuple[float, float]]:
    both = ((max(a[0], b[0]), min(a[1], b[1])) for a in some for b in others)
    return [gap for gap in both if gap[1] - gap[0] >= _GUTTER]


def _inner(lines: list[Line], gaps: list[tuple[float, float]]) -> list[float]:
    """Return the middles of those gaps that stand between two cells of some line."""
    low = min((cell.left for line in lines for cell in line), default=0.0)
    high = max((cell.right for line in lines for cell in line), default=0.0)
    if all(len(line) == 1 for line in lines):
        return []
    return [(gap[0] + gap[1]) / 2 for gap in gaps if gap[0] > low and gap[1] < high]


def _column(cell: Segment, gutters: list[float]) -> int:
    return sum(gutter < (cell.left + cell.right) / 2 for gutter in gutters)


def _whole(line: Line) -> Segment:
    return reduce(lambda above, cell: above.joined(cell, " "), line)


def _table(lines: list[list[Line]]) -> Iterator[Block]:
    rows: list[list[str]] = []
    for line in lines:
        row = [" ".join(cell.text for cell in cells) for cells in line]
        if rows and not row[0]:
            # The second line of a cell above.
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], row, strict=True)]
        else:
            rows.append(row)
    labelled = len(rows[0]) == len(("label", "value")) and any(row[0].endswith(":") for row in rows)
    yield from (Block(" ".join(row)) for row in rows) if labelled else table(rows)


def _paragraphs(lines: list[Segment], words: Counter[str]) -> Iterator[Block]:
    if not lines:
        return
    usual = median(line.height for line in lines)
    wide = max(line.right for line in lines)
    text, last = "", lines[0]
    for line in lines:
        if text and _begins_anew(last, line, usual, wide):
            yield _as_block(text)
            text = ""
        text = glued(text, line.text, words) if text else line.text
        last = line
    yield _as_block(text)


def _begins_anew(above: Segment, line: Segment, usual: float, wide: float) -> bool:
    if (
        above.top - line.top > _NEW_PARAGRAPH * max(above.height, usual)
        or abs(above.height - line.height) > 0.2 * usual
    ):
        return True
    short = above.right < above.left + 0.75 * (wide - above.left)
    return bool(_ITEM.match(line.text)) or (short and bool(_ENDED.search(above.text)))


def _as_block(text: str) -> Block:
    item = _ITEM.match(text)
    if item is None:
        return Block(text)
    mark = item["mark"]
    return Block(text[item.end() :], "item", 0, mark if mark[-1] in ".)" else "-")


def glued(above: str, below: str, words: Counter[str]) -> str:
    """Return two lines as one: a hyphen at the end goes, unless the word has one elsewhere too."""
    if above.endswith("-") and above[-2:-1].isalpha() and below[:1].islower():
        first, second = re.split(r"[^\w]+", above[:-1])[-1], re.split(r"[^\w]+", below)[0]
        return above + below if words[f"{first}-{second}"] else above[:-1] + below
    if _CJK.match(above[-1:]) and _CJK.match(below[:1]):
        return above + below
    return f"{above} {below}"


def _carry_over(above: list[Block], below: list[Block], words: Counter[str]) -> None:
    """Move the rest of a sentence to the page where it begins."""
    if not above or not below or {above[-1].kind, below[0].kind} - {"paragraph", "item"} or below[0].kind == "item":
        return
    end, start = above[-1].text, below[0].text
    if _ENDED.search(end) or not (start[:1].islower() or _CJK.match(start) or end.endswith(("-", ","))):
        return
    sentence = _FIRST_SENTENCE.match(start)
    rest = sentence[0] if sentence else start
    above[-1] = above[-1]._replace(text=glued(end, rest, words))
    below[0] = below[0]._replace(text=start[len(rest) :].strip())
