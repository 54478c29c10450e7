"""Which rows of a table a question is about.

A row answers if it has every name and number of the question, a number that is said beside a column's name in that
column ("room 4", "12 seats"), and if the table knows what is asked for ("the price of", "how many seats"). Of such rows
those that share most with the question are taken, all of them where several share the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spanforge.reference.answering.attributes import PLAIN_VERBS, asked_attributes, has_kind
from spanforge.reference.answering.spans import Wanted
from spanforge.reference.answering.units import Unit, stems
from spanforge.reference.grounding.lexicon import says
from spanforge.reference.grounding.rows import JOINT, Cell
from spanforge.reference.grounding.sentence import Sentence
from spanforge.reference.lexical import rarity

MAX_ROWS: Final = 6
"""Rows quoted at most."""
_IN_COLUMN: Final = 0.5
"""What a word counts that stands in a column's name, beside one that stands in the row's own cells."""
_LEADING: Final = 2
"""The cells that say what a row is about ..."""
_IN_LEADING: Final = 0.25
"""... and what a word counts more for standing there."""
_WHOLE_CHARS: Final = 240
"""A longer row is quoted by its leading cells and those that bear on the question."""
_MAX_QUESTION_CHARS: Final = 512
"""What is longer is no question about a row; its every name would be looked for in every cell."""
_MAX_SPECIFIC: Final = 16
"""Names and numbers of a question that rows are looked through for."""
_SHORTEST_DERIVED: Final = 4
_COPULAS: Final = frozenset({"is", "are", "was", "were"})
_ARTICLES: Final = frozenset({"the", "a", "an", "this", "that"})
_ALTERNATIVES: Final = re.compile(r"\b(?:and|or)\b|,", re.IGNORECASE)
_SUPERLATIVE: Final = re.compile(r"\b(?:most|least|fewest|best|worst|[a-z]{3,}est)\b")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row as it is compared: stems column by column, cell by cell, and all together."""

    unit: Unit
    columns: tuple[frozenset[str], ...]
    values: tuple[frozenset[str], ...]
    named: frozenset[str]
    held: frozenset[str]
    said: frozenset[str]

    @classmethod
    def of(cls, unit: Unit) -> _Row:
        columns = tuple(stems(cell.column) for cell in unit.cells)
        values = tuple(frozenset(map(_plain, stems(cell.value))) for cell in unit.cells)
        union = frozenset[str]().union
        return cls(unit, columns, values, union(*columns), union(*values), unit.terms | unit.context)

    @property
    def leading(self) -> frozenset[str]:
        return frozenset[str]().union(*self.values[:_LEADING])

    def knows(self, stem: str) -> bool:
        """Tell whether it, its columns or its headings have a stem, a synonym, or a word derived from it."""
        return says(self.said, stem) or any(_derived(stem, other) for other in self.said)

    def counts(self, asked: frozenset[str]) -> bool:
        """Tell whether a column that is named like what is counted has a number, if there is one."""
        cells = [cell for cell, column in zip(self.unit.cells, self.columns, strict=True) if asked & column]
        return not cells or any(map(str.isdigit, "".join(cell.value for cell in cells)))


def open_to_choice(question: str, want: Wanted | None, units: Sequence[Unit]) -> tuple[list[Unit], list[Unit]]:
    """Return the rows among some units that a question is about, and the sentences that may answer it beside them.

    Where a table is about things of the kind that the question gives a number of, and has none of that number ("room
    9"), a sentence answers only if it has the number.
    """
    question = question[:_MAX_QUESTION_CHARS]
    # Passages may overlap: a row is one row, however often it was found.
    rows = [_Row.of(unit) for unit in {unit.text: unit for unit in reversed(units) if unit.cells}.values()][::-1]
    asked = Sentence(question, 0)
    absent = {_plain(asked.stems[index]) for index in _specific(asked) if _is_absent(asked, index, rows)}
    sentences = [unit for unit in units if not unit.cells and absent <= set(map(_plain, unit.terms | unit.context))]
    return _matching(question, want, asked, rows), sentences


def _matching(question: str, want: Wanted | None, asked: Sentence, rows: Sequence[_Row]) -> list[Unit]:
    attributes = asked_attributes(question)
    rows = [
        row
        for row in rows
        if all(any(row.knows(stem) for stem in alternatives) for alternatives in attributes)
        and (want is None or want.kind != "quantity" or all(row.counts(alternatives) for alternatives in attributes))
        and has_kind(question, want, row.unit)
        and not _lacks_modifier(asked, row)
    ]
    specific = _specific(asked)
    meant = [row for row in rows if all(_satisfies(asked, index, row) for index in specific)]
    if meant or not specific:
        return _best(question, want, meant, rows)
    if not _ALTERNATIVES.search(question):
        return []
    # "The M8 and the M10 bolt" are two rows; what only one of them has is looked for in each alone.
    apart = [[row for row in rows if _satisfies(asked, index, row)] for index in specific[:MAX_ROWS]]
    found = [unit for group in apart for unit in _best(question, want, group, rows)]
    return list(dict.fromkeys(found))[:MAX_ROWS]


def known_to(question: str, asked: Iterable[str], unit: Unit) -> frozenset[str]:
    """Return the stems of a question that a row knows, be it by another name."""
    row = _Row.of(unit)
    # That the row has one of the names of what is asked for was found when it was chosen.
    known = PLAIN_VERBS.union(*asked_attributes(question))
    return frozenset(stem for stem in asked if stem in known or row.knows(stem))


def quoted_cells(question: str, want: Wanted | None, unit: Unit) -> str:
    """Return a row as it is quoted: whole where it is short, else what it is about and what bears on the question."""
    if len(unit.text) <= _WHOLE_CHARS:
        return unit.text
    asked = stems(question)
    for alternatives in asked_attributes(question):
        asked |= alternatives
    kept = {*range(min(_LEADING, len(unit.cells)))}
    hits = [_hits(asked, cell) for cell in unit.cells]
    # Of the cells that bear on the question, those of which no other bears on more: not each "reading 1", "reading 2".
    kept |= {place for place, hit in enumerate(hits) if hit and not any(hit < other for other in hits)}
    if want is not None and not any(has_kind(question, want, unit, (unit.cells[place],)) for place in kept):
        kept |= {place for place, cell in enumerate(unit.cells) if has_kind(question, want, unit, (cell,))}
    return JOINT.join(str(unit.cells[place]) for place in sorted(kept))


def _hits(asked: frozenset[str], cell: Cell) -> frozenset[str]:
    said = stems(str(cell))
    return frozenset(stem for stem in asked if says(said, stem))


def _specific(asked: Sentence) -> list[int]:
    """Return the places of a question's numbers and names, which no other number or name stands for."""
    places = [
        index for index, stem in enumerate(asked.stems) if stem and (stem[0].isdigit() or index in asked.marked_names)
    ]
    return places[:_MAX_SPECIFIC]


def _satisfies(asked: Sentence, index: int, row: _Row) -> bool:
    stem = _plain(asked.stems[index])
    columns = _columns(asked, index, row)
    inside = any(stem in row.values[place] or stem in row.columns[place] for place in columns)
    if inside or (columns and stem[0].isdigit()):
        return inside
    return stem in row.held or row.knows(asked.stems[index])


def _is_absent(asked: Sentence, index: int, rows: Sequence[_Row]) -> bool:
    numbered = [row for row in rows if asked.stems[index][0].isdigit() and _columns(asked, index, row)]
    return bool(numbered) and not any(_satisfies(asked, index, row) for row in numbered)


def _columns(asked: Sentence, index: int, row: _Row) -> set[int]:
    """Return the columns of a row that a number or name of the question is said beside."""
    return {
        place
        for beside in _beside(asked, index)
        for place, column in enumerate(row.columns)
        if says(column, asked.stems[beside])
    }


def _beside(asked: Sentence, index: int) -> Iterator[int]:
    before = index - 2 if index and asked.tokens[index - 1].lower() in _COPULAS else index - 1
    yield from (place for place in (before, index + 1) if 0 <= place < len(asked.stems) and asked.stems[place])


def _lacks_modifier(asked: Sentence, row: _Row) -> bool:
    """Tell whether a thing that the row has is asked about with a word between it and its article that is not there.

    "The copper bolt" is not the bolt of a row that says nothing of copper.
    """
    specific = _specific(asked)
    unknown = False
    inside = False
    for index, stem in enumerate(asked.stems):
        if not stem:
            inside, unknown = asked.tokens[index].lower() in _ARTICLES, False
        elif inside and unknown and not stem[0].isdigit() and says(row.held, _plain(stem)):
            return True
        elif inside and index not in specific:
            unknown = unknown or not row.knows(stem)
    return False


def _best(question: str, want: Wanted | None, meant: Sequence[_Row], rows: Sequence[_Row]) -> list[Unit]:
    measure = {want.measure} if want else set[str]()
    asked = frozenset(map(_plain, stems(question) - measure))
    weights = rarity(asked, [row.held for row in rows])
    scores = [_score(weights, row) for row in meant]
    best = [row for row, score in zip(meant, scores, strict=True) if score > max(scores) - 1e-9]
    if not best:
        return []
    differing = [stem for stem in asked if not all(says(row.held, stem) for row in rows)]
    told_apart = len(rows) == 1 or any(says(best[0].held, stem) for stem in differing)
    unknown = any(not best[0].knows(stem) for stem in asked)
    if not told_apart and (len(best) > MAX_ROWS or _SUPERLATIVE.search(question.lower()) or unknown):
        return []
    return [row.unit for row in best[:MAX_ROWS]]


def _score(weights: dict[str, float], row: _Row) -> float:
    held, named, leading = row.held, row.named, row.leading
    score = 0.0
    for stem, weight in weights.items():
        # What a column is called is asked for, not said; a synonym of it in some cell is chance.
        if stem in held or (says(held, stem) and not says(named, stem)):
            score += weight * (1.0 + _IN_LEADING * says(leading, stem))
        elif says(named, stem):
            score += weight * _IN_COLUMN
    return score


def _plain(stem: str) -> str:
    """Return a number without what only its writing adds: "4,000" is "4000", "07:40" is "7:40"."""
    if not stem[0].isdigit():
        return stem
    return stem.replace(",", "").lstrip("0") or "0"


def _derived(stem: str, other: str) -> bool:
    return min(len(stem), len(other)) >= _SHORTEST_DERIVED and (stem.startswith(other) or other.startswith(stem))
