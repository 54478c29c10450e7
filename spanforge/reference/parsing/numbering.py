"""Numbers of lists and headings, counted as a reader sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from string import ascii_lowercase
from typing import Final, NamedTuple

LEVELS: Final = 10
_TENS: Final = ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx", "xc")
_ONES: Final = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")


class Numbering(NamedTuple):
    """A list of the document, and how deep in it a paragraph is."""

    number: str
    depth: int


class Level(NamedTuple):
    """How the items of a list are numbered at a depth.

    Attributes:
        form: ``decimal``, ``lowerLetter``, ``upperRoman`` and so on, ``bullet`` or ``none``.
        start: Number of the first item.
        pattern: What is written, "%1.%2" for the numbers of the upper two levels.
    """

    form: str = "decimal"
    start: int = 1
    pattern: str = ""


class Numbers:
    """Counts the items of the lists of a document."""

    def __init__(self, levels: Iterable[tuple[Numbering, Level]] = ()) -> None:
        self._levels = dict(levels)
        self._counts: Counter[Numbering] = Counter()

    def is_counted(self, at: Numbering) -> bool:
        """Tell whether something is numbered, and how is known."""
        return "%" in self._levels.get(at, Level()).pattern

    def restart(self, number: str, depth: int = 0) -> None:
        """Begin a list anew, from a depth on."""
        for deeper in range(depth, LEVELS):
            self._counts.pop(Numbering(number, deeper), None)

    def mark(self, at: Numbering, value: int | None = None) -> str:
        """Count one item, and return what stands before it; what is counted is said only where it is not the next."""
        form, start, mark = self._levels.get(at, Level("bullet"))
        if form in {"bullet", "none"}:
            return "-"
        self._counts[at] = self._counts[at] + 1 if value is None else value - start + 1
        self.restart(at.number, at.depth + 1)
        for place in range(at.depth + 1):
            upper = Numbering(at.number, place)
            level = self._levels.get(upper, Level())
            mark = mark.replace(f"%{place + 1}", _spelled(level.start + max(0, self._counts[upper] - 1), level.form))
        return mark or f"{start + self._counts[at] - 1}."


def _spelled(value: int, form: str) -> str:
    text = str(value)
    if form.endswith("Letter") and 0 < value <= len(ascii_lowercase):
        text = ascii_lowercase[value - 1]
    elif form.endswith("Roman") and 0 < value < len(_TENS) * len(_ONES):
        text = _TENS[value // 10] + _ONES[value % 10]
    return text.upper() if form.startswith("upper") else text
