"""From lines on pages to text: columns, tables and paragraphs, in the order in which they are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from spanforge.reference.parsing.lines import ENDED, Line, Segment
from spanforge.reference.parsing.ruled import Grid
from spanforge.reference.parsing.tree import Block, is_over_values, names_columns, table

_GUTTER: Final = 6.0
"""Points between two columns at least."""
_PROSE: Final = 3.5
"""Words in a cell on average, from which on columns are text rather than a table."""
_FEWEST_LINES: Final = 3
_CLOSER: Final = 0.9
"""Share of one distance that another one must be below to be nearer."""
_OPEN_ROWS: Final = 1.4
"""Heights of a line between rows, from which on lines in a cell stand closer than rows do."""
_NEW_PARAGRAPH: Final = 1.7
"""Heights between two lines, from which on another paragraph begins."""
_ITEM: Final = re.compile(
    r"(?P<mark>[\u2022\u25aa\u25cf\u25e6\u2023\u2043\uf0b7\u00b7*\u2013\u2014-]|\(?\w{1,2}[.)]) +(?=\S)"
)
_NOTE: Final = re.compile(r"(?:\d{1,2}|[*\u2020\u2021]) ?[A-Z]")
"""How a note at the foot of a page begins."""
_FIRST_SENTENCE: Final = re.compile(r".*?(?:[.!?][\"'\u201d\u2019)\]]*(?=\s|$)|[\u3002\uff01\uff1f])", re.DOTALL)
_CJK: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uff20\uff3b-\uff40\uff5b-\uffef]")


class _Rows(NamedTuple):
    """A table whose head may stand on the page before."""

    rows: list[list[str]]


def pages_of(pages: Sequence[list[Line]], grids: Sequence[list[Grid]]) -> list[list[Block]]:
    """Return the text of each page in blocks.

    A sentence that goes on over a page stands whole on the first; a table that does has its head on each.
    """
    words = Counter(re.findall(r"\w+-\w+", " ".join(cell.text for page in pages for line in page for cell in line)))
    read: list[list[Block]] = []
    head: Sequence[str] = []
    for lines, tables in zip(pages, grids, strict=True):
        blocks: list[Block] = []
        names = head
        for part in _page(lines, tables, words):
            if isinstance(part, _Rows):
                goes_on = len(names) == len(part.rows[0]) and not is_over_values(part.rows)
                rows = [names, *part.rows] if goes_on and names != part.rows[0] else part.rows
                blocks += list(table(rows, head=goes_on or None))[len(rows) - len(part.rows) :]
                head = rows[0] if names_columns(rows[0]) else []
            else:
                blocks.append(part)
                head = []
            names = []
        read.append(blocks)
    for above, below in pairwise(read):
        _carry_over(above, below, words)
    return read


def _page(lines: list[Line], grids: list[Grid], words: Counter[str]) -> Iterator[Block | _Rows]:
    """Yield what stands on a page: tables that are drawn, and what is above and below each of them."""
    for grid in grids:
        yield from _blocks([line for line in lines if line[0].top > grid.top], words)
        lines = [line for line in lines if line[0].top <= grid.top]
        yield _Rows([[_said(cell, words) for cell in row] for row in grid.rows])
    yield from _blocks(lines, words)


def _said(cell: list[Line], words: Counter[str]) -> str:
    return reduce(
        lambda above, line: glued(above, line, words) if above else line, (_whole(line).text for line in cell), ""
    )


def _blocks(lines: list[Line], words: Counter[str]) -> Iterator[Block | _Rows]:
    for group, gutters in _groups(lines):
        if gutters and (len(group) < _FEWEST_LINES or not _is_prose([cell for line in group for cell in line])):
            above, rows, below = _parts(group)
            yield from _paragraphs([_whole(line) for line in above], words)
            yield from _table([_split(line, _inner(rows, reduce(_shared, map(_gaps, rows)))) for line in rows])
            yield from _paragraphs([_whole(line) for line in below], words)
        else:
            columns = zip(*(_split(line, gutters) for line in group), strict=True)
            read = [list(_paragraphs([_whole(cells) for cells in column if cells], words)) for column in columns]
            for above, below in pairwise(read):
                _carry_over(above, below, words)
            yield from (block for column in read for block in column)


def _is_prose(cells: Line) -> bool:
    """Tell whether columns are text that runs on, rather than a table."""
    words = sum(len(cell.text.split()) + len(_CJK.findall(cell.text)) / 2 for cell in cells) / len(cells)
    runs_on = sum(cell.text[:1].islower() for cell in cells) > len(cells) / 2
    return words >= (_PROSE - 1 if runs_on else _PROSE)


def _split(line: Line, gutters: list[float]) -> list[Line]:
    """Return the cells of a line by their columns."""
    return [[cell for cell in line if _column(cell, gutters) == place] for place in range(len(gutters) + 1)]


def _parts(group: list[Line]) -> tuple[list[Line], list[Line], list[Line]]:
    """Return a title over a table, its rows, and text below it: lines of one cell that do not stand in a column."""
    full = [place for place, line in enumerate(group) if len(line) > 1]
    first, last = full[0], full[-1] + 1
    gaps = reduce(_shared, map(_gaps, group[first:last]))
    gutters = _inner(group[first:last], gaps)
    left = min(line[0].left for line in group[first:last])
    while first and _column(group[first - 1][0], gutters):
        first -= 1
    while (
        last < len(group)
        and group[last][0].left > left - _GUTTER
        and len(_shared(gaps, _gaps(group[last]))) == len(gaps)
    ):
        last += 1
    return group[:first], group[first:last], group[last:]


def _groups(lines: list[Line]) -> Iterator[tuple[list[Line], list[float]]]:
    """Yield lines that share gutters, with the middle of each gutter; lines without any share that."""
    group: list[Line] = []
    gaps: list[tuple[float, float]] = []
    for line in lines:
        own = _gaps(line)
        shared = _shared(gaps, own)
        before, inner = _inner(group, gaps), _inner([*group, line], shared)
        apart = group and group[-1][0].top - line[0].top > _NEW_PARAGRAPH * line[0].height
        if len(group) > 1 and (bool(before) != bool(inner) or (apart and len(inner) < len(before))):
            yield group, before
            group, shared = [], own
        elif not (before or inner):
            if group and len(line) > 1:
                yield group, before
                group = []
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


def _table(lines: list[list[Line]]) -> Iterator[Block | _Rows]:
    rows: list[list[str]] = []
    for line, goes_on in zip(lines, _going_on(lines), strict=True):
        row = [" ".join(cell.text for cell in cells) for cells in line]
        if goes_on:
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], row, strict=True)]
        else:
            rows.append(row)
    labelled = len(rows[0]) == len(("label", "value")) and any(row[0].endswith(":") for row in rows)
    yield from (Block(" ".join(row)) for row in rows) if labelled else [_Rows(rows)]


def _going_on(lines: list[list[Line]]) -> list[bool]:
    """Tell of each line of a table whether it goes on with the row above.

    A line without a first cell belongs to the nearer of its neighbours, unless it stands as far from both as rows do.
    """
    boxes = [_whole([cell for cells in line for cell in cells]) for line in lines]
    steps = [above.top - below.top for above, below in pairwise(boxes)]
    usual = median(
        [step for step, (above, below) in zip(steps, pairwise(lines), strict=True) if above[0] and below[0]] or [0]
    )
    goes_on = [False] * (len(lines) + 1)
    upwards = True
    for place, (line, box, above, below) in enumerate(zip(lines, boxes, [1e9, *steps], [*steps, 1e9], strict=True)):
        near = min(above, below)
        apart = place == 0 or (sum(map(bool, line)) > 1 and near > _OPEN_ROWS * box.height)
        if line[0] or (apart and near >= _CLOSER * usual):
            upwards = True
            continue
        upwards = above < _CLOSER * below or (upwards and below >= _CLOSER * above)
        goes_on[place + (not upwards)] = True
    return goes_on[:-1]


def _paragraphs(lines: list[Segment], words: Counter[str]) -> Iterator[Block]:
    if not lines:
        return
    usual = median(line.height for line in lines)
    step = median([above.top - below.top for above, below in pairwise(lines)] or [0.0])
    wide = max(line.right for line in lines)
    text, last = "", lines[0]
    for line in lines:
        if text and _begins_anew(last, line, usual, wide, step):
            yield _as_block(text)
            text = ""
        text = glued(text, line.text, words) if text else line.text
        last = line
    yield _as_block(text)


def _begins_anew(above: Segment, line: Segment, usual: float, wide: float, step: float) -> bool:
    if abs(above.height - line.height) > 0.2 * usual:
        return True
    short = above.right < above.left + 0.75 * (wide - above.left)
    if above.top - line.top > _NEW_PARAGRAPH * max(above.height, usual):
        # Lines may all stand wide apart, and a sentence go on over them.
        wide_apart = above.top - line.top <= step / _CLOSER and not short
        return not (wide_apart and _goes_on(above.text, line.text))
    return bool(_ITEM.match(line.text)) or (short and bool(ENDED.search(above.text)))


def _goes_on(end: str, start: str) -> bool:
    """Tell whether a sentence that has not ended may go on with a text."""
    return not ENDED.search(end) and (start[:1].islower() or bool(_CJK.match(start)) or end.endswith(("-", ",")))


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
        return above + below if len(first) == 1 or words[f"{first}-{second}"] else above[:-1] + below
    if _CJK.match(above[-1:]) and _CJK.match(below[:1]):
        return above + below
    return f"{above} {below}"


def _carry_over(above: list[Block], below: list[Block], words: Counter[str]) -> None:
    """Move the rest of a sentence to the page or the column where it begins, which notes may stand below."""
    last = max((place for place, block in enumerate(above) if not _NOTE.match(block.text)), default=-1)
    if last < 0 or not below or {above[last].kind, below[0].kind} - {"paragraph", "item"} or below[0].kind == "item":
        return
    end, start = above[last].text, below[0].text
    if not _goes_on(end, start):
        return
    sentence = _FIRST_SENTENCE.match(start)
    rest = sentence[0] if sentence else start
    above[last] = above[last]._replace(text=glued(end, rest, words))
    below[0] = below[0]._replace(text=start[len(rest) :].strip())
