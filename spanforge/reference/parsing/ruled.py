"""Tables that are drawn: rules that cross on a page, and the text in the cells between them."""

from __future__ import annotations

import ctypes
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from spanforge.reference._extras import Untyped
from spanforge.reference.parsing.lines import Line, Segment, lines_of

_PATH: Final = 2
_MOVE: Final = 2
_THIN: Final = 3.0
"""Points that a rule is thick at most, and that rules which meet stand apart at most."""
_SHORTEST: Final = 5.0
_MOST_PATHS: Final = 3_000
_MOST_RULES: Final = 500
"""What is drawn on one page, and rules among it that are not one line, from which on it is a drawing."""
_MOST_BESIDE: Final = 3
"""Words beside a table, from which on it stands in a column of a page."""
_FEWEST: Final = 2
"""Rows and columns of a table."""
_FEW_BANDS: Final = 4
"""Rules across a table that part its head and its sums from the rest, and not each row."""
_BESIDE: Final = 0.5
"""Share of their heights that lines of two cells have in common in one row."""


class Grid(NamedTuple):
    """A table by its rules, top to bottom and left to right, and the lines of text in each of its cells.

    Attributes:
        top: Where it begins on the page, in points from below.
        rows: Of each row its cells: lines of text, of a merged cell in each of its rows, and in its first column.
    """

    top: float
    rows: list[list[list[Line]]]


class Rules:
    """The rules on a page, across it and down it."""

    def __init__(self, raw: Untyped, page: Untyped) -> None:
        paths: list[Untyped] = list(islice(page.get_objects([_PATH], max_depth=1), _MOST_PATHS + 1))
        drawn = [box for path in paths for box in _drawn(raw, path)] if len(paths) <= _MOST_PATHS else []
        kept = [box for box in drawn if max(box.right - box.left, box.top - box.bottom) >= _SHORTEST]
        across = _joined(one for one in kept if one.top - one.bottom <= _THIN)
        down = _joined(_turned(one) for one in kept if one.right - one.left <= _THIN)
        is_drawing = len(across) + len(down) > _MOST_RULES
        self._across = [] if is_drawing else across
        self._down = [] if is_drawing else sorted(map(_turned, down))
        self._lefts = [one.left for one in self._down]

    def part(self, one: Segment, other: Segment) -> bool:
        """Tell whether a rule stands between two runs of letters on a line."""
        low, high = bisect(self._lefts, one.right - _THIN), bisect(self._lefts, other.left + 1)
        middle = (other.bottom + other.top) / 2
        return any(rule.bottom <= middle <= rule.top and rule.right > one.right - 1 for rule in self._down[low:high])

    def grids(self, segments: list[Segment]) -> tuple[list[Grid], list[Segment]]:
        """Return the tables of a page, and the text outside of them."""
        outside = segments
        found: list[tuple[_Frame, Grid, list[Segment]]] = []
        # A table in a cell of another one is found first, and its text is not that cell's.
        for frame in sorted(self._frames(), key=_Frame.area):
            held = [one for one in outside if frame.holds(one)]
            rows = frame.rows(held)
            if len(rows) >= _FEWEST:
                found.append((frame, Grid(frame.ys[-1], rows), held))
                outside = [one for one in outside if not frame.holds(one)]
        grids: list[Grid] = []
        for frame, grid, held in found:
            beside = [one for one in outside if frame.ys[0] < _middle(one)[1] < frame.ys[-1]]
            if sum(len(one.text.split()) for one in beside) < _MOST_BESIDE:
                grids.append(grid)
            else:
                outside = [*outside, *held]
        return sorted(grids, key=lambda grid: -grid.top), outside

    def _frames(self) -> Iterator[_Frame]:
        """Yield the rules that meet one another, directly or by others."""
        waiting = [*self._across, *self._down]
        while waiting:
            met, waiting = [waiting[0]], waiting[1:]
            for rule in met:
                touching = [one for one in waiting if _meet(rule, one)]
                met += touching
                if touching:
                    waiting = [one for one in waiting if not _meet(rule, one)]
            frame = _Frame(met)
            if min(len(frame.xs), len(frame.ys)) > _FEWEST:
                yield frame


class _Frame:
    """Rules that meet.

    Attributes:
        xs: Where its columns begin, and the last one ends.
        ys: Where its rows end, from below, and the upper one begins.
    """

    def __init__(self, rules: list[Segment]) -> None:
        across = [one for one in rules if one.right - one.left > _THIN]
        down = [one for one in rules if one.top - one.bottom > _THIN]
        self.xs = _places(one.left for one in down)
        self.ys = _places(one.bottom for one in across)
        self._across: dict[int, list[Segment]] = {}
        self._down: dict[int, list[Segment]] = {}
        for one in across:
            self._across.setdefault(bisect(self.ys, one.bottom) - 1, []).append(one)
        for one in down:
            self._down.setdefault(bisect(self.xs, one.left) - 1, []).append(one)

    def area(self) -> float:
        """Return how large it is."""
        return (self.xs[-1] - self.xs[0]) * (self.ys[-1] - self.ys[0])

    def holds(self, text: Segment) -> bool:
        """Tell whether a text stands in it."""
        across, up = _middle(text)
        return self.xs[0] < across < self.xs[-1] and self.ys[0] < up < self.ys[-1]

    def rows(self, texts: list[Segment]) -> list[list[list[Line]]]:
        """Return the cells of its rows; lines between two rules that each fill the first cell are rows of their own."""
        cells: dict[tuple[int, int], list[Segment]] = {}
        for one in texts:
            across, up = _middle(one)
            at = self._origin(bisect(self.ys, up) - 1, bisect(self.xs, across) - 1)
            cells.setdefault(at, []).append(one)
        rows: list[list[list[Line]]] = []
        few = len(self.ys) <= _FEW_BANDS
        for row in reversed(range(len(self.ys) - 1)):
            origins = [self._origin(row, column) for column in range(len(self.xs) - 1)]
            # What is merged across columns stands in the first of them.
            own = [lines_of(cells.get(at, [])) if at[1] == column else [] for column, at in enumerate(origins)]
            rows += (_by_line(own) if few and len(own[0]) > _FEWEST else []) or [own]
        filled = {at[1] for at in cells}
        return [row for row in rows if any(row)] if len(filled) >= _FEWEST else []

    def _origin(self, row: int, column: int) -> tuple[int, int]:
        """Return the upper left place of the cell at a place: no rule parts the places of one cell."""
        up = (self.ys[row] + self.ys[row + 1]) / 2
        while column and not any(one.bottom < up < one.top for one in self._down.get(column, ())):
            column -= 1
        across = (self.xs[column] + self.xs[column + 1]) / 2
        while row + 2 < len(self.ys) and not any(one.left < across < one.right for one in self._across[row + 1]):
            row += 1
        return row, column


def _by_line(cells: Sequence[list[Line]]) -> list[list[list[Line]]]:
    """Return the lines of a row of cells as rows where each stands beside one in the first cell, else nothing."""
    rows = [[[line for line in cell if line[0].overlap(first[0]) > _BESIDE] for cell in cells] for first in cells[0]]
    whole = sum(map(len, cells)) == sum(len(cell) for row in rows for cell in row)
    wrapped = 2 * sum(line[0].text[:1].islower() for line in cells[0]) >= len(rows)
    return rows if whole and not wrapped and all(sum(map(bool, row)) > 1 for row in rows) else []


def _drawn(raw: Untyped, path: Untyped) -> Iterator[Segment]:
    """Yield the straight rules of a path: a box that is thin, or the lines of what is stroked."""
    left, bottom, right, top = path.get_bounds()
    if min(right - left, top - bottom) <= _THIN:
        yield Segment(left, bottom, right, top, "")
        return
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(path.raw, fill, stroke)
    count = raw.FPDFPath_CountSegments(path.raw) if stroke.value else 0
    matrix = path.get_matrix()
    last = start = (0.0, 0.0)
    x, y = ctypes.c_float(), ctypes.c_float()
    for place in range(min(count, _MOST_PATHS)):
        part = raw.FPDFPath_GetPathSegment(path.raw, place)
        raw.FPDFPathSegment_GetPoint(part, x, y)
        point = matrix.on_point(x.value, y.value)
        if raw.FPDFPathSegment_GetType(part) == _MOVE:
            start = point
        else:
            yield _line(last, point)
        last = point
        if raw.FPDFPathSegment_GetClose(part):
            yield _line(last, start)


def _line(one: tuple[float, float], other: tuple[float, float]) -> Segment:
    (left, right), (bottom, top) = sorted((one[0], other[0])), sorted((one[1], other[1]))
    return Segment(left, bottom, right, top, "")


def _joined(rules: Iterable[Segment]) -> list[Segment]:
    """Join rules across that go on on one line: each cell of a table may have been drawn with rules of its own."""
    lines: dict[int, list[Segment]] = {}
    for one in sorted(rules):
        line = lines.setdefault(round(one.bottom), [])
        if line and one.left <= line[-1].right + _THIN:
            line[-1] = line[-1]._replace(right=max(line[-1].right, one.right))
        else:
            line.append(one)
    return [one for line in lines.values() for one in line]


def _turned(one: Segment) -> Segment:
    return Segment(one.bottom, one.left, one.top, one.right, one.text)


def _meet(one: Segment, other: Segment) -> bool:
    return (
        one.left - _THIN <= other.right
        and other.left - _THIN <= one.right
        and one.bottom - _THIN <= other.top
        and other.bottom - _THIN <= one.top
    )


def _middle(one: Segment) -> tuple[float, float]:
    return (one.left + one.right) / 2, (one.bottom + one.top) / 2


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _THIN


def _places(at: Iterable[float]) -> list[float]:
    places: list[float] = []
    for one in sorted(at):
        if not places or not _near(one, places[-1]):
            places.append(one)
    return places
