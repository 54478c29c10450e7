"""Passages cut into what may be quoted, each piece whole: a sentence, an item of a list, a row of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from spanforge.reference.grounding.rows import JOINT, LEVEL, Cell, cells_of, first_cell_in
from spanforge.reference.grounding.sentence import content_stem
from spanforge.reference.grounding.text import TOKEN
from spanforge.reference.models import RetrievedDocument
from spanforge.reference.passages import body_of, headed, pieces_of, plain, quoted

_ITEM: Final = re.compile(r"(?:[-*+\u2022]|\d{1,3}[.)])\s+(?=\S)")
_LEANS: Final = re.compile(r"^(?:It|Its|They|Their|He|His|She|Her|This|These|That|Those|Such)\b")
_ENDED: Final = re.compile(r"[.!?\u3002][\"')\]\u201d]*$")
_NAME: Final = re.compile(r"\b[A-Z][\w'-]+")
_POINTS_ELSEWHERE: Final = re.compile(r"^(?:Below|Above) (?:are|is|you)\b")
_CODE: Final = re.compile(r"from [\w.]+ import |import [\w.]+$|>>> |(?:def|class) \w+[(:]|@\w+[.(]|[\w.]+ = [\w.]+\(")
_SHORTEST_LABEL: Final = 4  # Words from which it announces something without the sentence before it on its line.
_LONGEST_PAIR: Final = 50
"""Words up to which a sentence is quoted with the one it leans on."""
_LONGEST_LIST: Final = 900
"""Characters up to which a list is quoted with all its items."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a passage that can stand alone.

    Attributes:
        text: As it will be quoted: with the sentence before it where it leans on that ("It flows through ten
            countries"), with the line that announces it where it is an item.
        sentence: What it says itself, where a short answer is looked for.
        number: Number of its passage in the prompt.
        words: Its words in order: stem, and as written.
        context: Stems of the headings over it and of the line that announces it.
        heading: The nearest heading over it.
        cells: Where it is a row of a table, its cells; the first is what the row is about, even where the passage
            begins further on in the row.
        listing: Where it is an item, the list it belongs to, as it will be quoted; empty where that is too long.
    """

    text: str = field(repr=False)
    sentence: str = field(repr=False)
    number: int
    words: tuple[tuple[str, str], ...] = field(repr=False)
    context: frozenset[str] = field(repr=False)
    heading: str = field(default="", repr=False)
    cells: tuple[Cell, ...] = field(default=(), repr=False)
    listing: str = field(default="", repr=False)
    terms: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", frozenset(stem for stem, _ in self.words))

    @property
    def names(self) -> frozenset[str]:
        """Stems of the names it mentions."""
        return stems(" ".join(_NAME.findall(self.text)))


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning, as the grounder reads them."""
    return frozenset(stem for stem, _ in words_of(text))


def words_of(text: str) -> tuple[tuple[str, str], ...]:
    """Return the words that carry meaning, in order: stem, and as written."""
    return tuple((stem, token) for token in TOKEN.findall(text) if (stem := content_stem(token)))


def units_of(documents: Sequence[RetrievedDocument]) -> list[Unit]:
    """Return the units of all passages in order.

    A heading is none, nor is a question: what stands below one is read under it. A line that ends in a colon is part
    of what follows it.
    """
    units: list[Unit] = []
    for number, document in enumerate(documents, start=1):
        units += _Cut(number, document.heading).units(headed(body_of(document)))
    return units


@dataclass(slots=True)
class _Cut:
    """One passage as it is read from top to bottom."""

    number: int
    above: str
    heading: str = ""
    label: str = ""
    before: str = ""
    first_cell: str = ""
    items: list[Unit] = field(default_factory=list[Unit])
    marks: list[str] = field(default_factory=list[str])
    done: list[Unit] = field(default_factory=list[Unit])

    def units(self, text: str) -> list[Unit]:
        self.first_cell = first_cell_in(self.above)
        if not self.first_cell and "|" not in self.above:
            self.heading = self.above.rpartition(LEVEL)[2]
        for raw, is_new_line in pieces_of(text):
            if raw.startswith("#") or (is_new_line and raw.endswith("?")):
                self._close()
                self.heading, self.label, self.before, self.first_cell = raw.lstrip("# "), "", "", ""
            elif cells := cells_of(f"{self.first_cell}{JOINT}{raw}" if self.first_cell else raw):
                self._close()
                self.done.append(self._row(cells))
                self.first_cell = self.before = ""
            else:
                self._prose(raw, is_new_line=is_new_line)
        self._close()
        return self.done

    def _prose(self, raw: str, *, is_new_line: bool) -> None:
        self.first_cell = ""
        text = quoted(plain(raw))
        if is_new_line and (mark := _ITEM.match(raw)):
            self.marks.append(mark[0].strip() if mark[0][0].isdigit() else "-")
            self.items.append(self._unit(f"{self.label} {text}".strip(), text))
        elif self.items and not is_new_line:
            self.items[-1] = self._unit(f"{self.items[-1].text} {text}", f"{self.items[-1].sentence} {text}")
        else:
            self._close()
            if text.endswith(":"):
                if not is_new_line and len(text.split()) < _SHORTEST_LABEL:
                    text = f"{self.before} {text}".strip()
                self.label = f"{self.label} {text}".strip()
                return
            own = f"{self.label} {text}".strip()
            self._sentence(own)
            self.label, self.before = "", own if _ENDED.search(own) else ""

    def _sentence(self, text: str) -> None:
        pair = f"{self.before} {text}" if self.before and _LEANS.match(text) else text
        unit = self._unit(pair if len(pair.split()) <= _LONGEST_PAIR else text, text)
        if unit.words and not text.endswith("?") and not _POINTS_ELSEWHERE.match(text) and not _CODE.match(text):
            self.done.append(unit)

    def _close(self) -> None:
        """End the list that is being read: each of its items knows the whole of it."""
        lines = zip(self.marks, (item.sentence for item in self.items), strict=True)
        whole = "\n".join([*([self.label] if self.label else []), *map(" ".join, lines)])
        kept = whole if len(self.items) > 1 and len(whole) <= _LONGEST_LIST else ""
        self.done += [replace(item, listing=kept) for item in self.items if item.words]
        if self.items:
            self.items, self.marks, self.label, self.before = [], [], "", ""

    def _unit(self, text: str, sentence: str) -> Unit:
        context = stems(f"{self.above} {self.heading} {self.label}")
        return Unit(text, sentence, self.number, words_of(text), context, heading=self.heading)

    def _row(self, cells: tuple[Cell, ...]) -> Unit:
        quotable = tuple(Cell(quoted(cell.column), quoted(cell.value)) for cell in cells)
        text = JOINT.join(map(str, quotable))
        return Unit(text, text, self.number, words_of(text), stems(f"{self.above} {self.heading}"), cells=quotable)
