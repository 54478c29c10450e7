"""Passages cut into the units an extractive answer is made of: sentences that can stand alone, and rows of tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spanforge.reference.assembly import quoted
from spanforge.reference.grounding.contexts import content_stem
from spanforge.reference.grounding.rows import JOINT, Cell, cells_of, first_cell_in
from spanforge.reference.grounding.text import TOKEN, sentence_spans
from spanforge.reference.passages import body_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanforge.reference.models import RetrievedDocument

_LIST_MARK = re.compile(r"^(?:[-*+]\s+|\d+[.)]\s+|>\s*)")
_EMPHASIS = re.compile(r"\*\*|__|`")
_LEANS = re.compile(r"^(?:It|Its|They|Their|He|His|She|Her|This|These|That|Those|Such)\b")
_NAME = re.compile(r"\b[A-Z][\w'-]+")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, with the one before it where it leans on that ("It flows through ten countries").

    Attributes:
        text: As it will be quoted.
        sentence: The last sentence of it, where a short answer is looked for.
        number: Number of its passage in the prompt.
        terms: Stems of what it says.
        context: Stems of the headings over it.
        names: Stems of the names it mentions.
        cells: Where it is a row of a table, its cells; the first is what the row is about, even where the passage
            begins further on in the row.
    """

    text: str = field(repr=False)
    sentence: str = field(repr=False)
    number: int
    terms: frozenset[str] = field(repr=False)
    context: frozenset[str] = field(repr=False)
    names: frozenset[str] = field(repr=False)
    cells: tuple[Cell, ...] = field(default=(), repr=False)


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words that carry meaning, as the grounder reads them."""
    return frozenset(stem for token in TOKEN.findall(text) if (stem := content_stem(token)))


def units_of(documents: Sequence[RetrievedDocument]) -> list[Unit]:
    """Return the units of all passages in order, headings left out."""
    units: list[Unit] = []
    for number, document in enumerate(documents, start=1):
        heading = document.heading
        first_cell = first_cell_in(heading)
        before = ""
        text = body_of(document)
        for start, end in sentence_spans(text):
            raw = text[start:end]
            if raw.startswith("#"):
                heading, before, first_cell = raw.lstrip("# "), "", ""
                continue
            above = f"{document.heading} {heading}"
            cells = cells_of(f"{first_cell}{JOINT}{raw}" if first_cell else raw)
            unit = _row(cells, number, above) if cells else _sentence(raw, before, number, above)
            first_cell = ""
            if unit is not None:
                units.append(unit)
                before = "" if cells else unit.sentence
    return units


def _sentence(raw: str, before: str, number: int, above: str) -> Unit | None:
    sentence = " ".join(_EMPHASIS.sub("", _LIST_MARK.sub("", quoted(raw))).split())
    own = stems(sentence)
    if not own:
        return None
    leans = bool(before and _LEANS.match(sentence))
    text = f"{before} {sentence}" if leans else sentence
    said = own | stems(before) if leans else own
    return Unit(text, sentence, number, said, stems(above) - said, _names(text))


def _row(cells: tuple[Cell, ...], number: int, above: str) -> Unit:
    quotable = tuple(Cell(quoted(cell.column), quoted(cell.value)) for cell in cells)
    text = JOINT.join(map(str, quotable))
    said = stems(text)
    return Unit(text, text, number, said, stems(above) - said, _names(text), quotable)


def _names(text: str) -> frozenset[str]:
    return stems(" ".join(_NAME.findall(text)))
