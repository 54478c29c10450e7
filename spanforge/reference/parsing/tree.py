"""One structure for every format: blocks in the order of the page, written as Markdown.

A parser yields headings, paragraphs, items, rows and code; how those look in the text, and what stands between them, is
said here alone. A row is one line that names its columns, so that it is understood without the head of its table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Final, Literal, NamedTuple

from spanforge.reference.grounding.rows import JOINT
from spanforge.reference.parsing.base import SEPARATOR, Section

BlockKind = Literal["heading", "paragraph", "item", "row", "code"]
_DEEPEST: Final = 6
ROWS_A_SECTION: Final = 1000
"""Rows of one section."""
_LONGEST_NAME: Final = 80
"""Characters of a cell that may be the name of a column; a longer one is text."""
_LONGEST_NUMBER: Final = 10
SENTENCE: Final = re.compile(r"[.!?\u3002](?:\s|$)")
_LONGEST_UNIT: Final = 8
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_MEASURE: Final = re.compile(r"[-+]?\d[\d.,]* ?([^\W\d_][^\d]{0,9})")
_DIGITS: Final = re.compile(r"\d+")
_NUMBER: Final = re.compile(r"[-+]?[\d.,:/%\s]*\d[\d.,:/%\s]*")


class Block(NamedTuple):
    """One thing on a page.

    Attributes:
        text: What it says, without marks of Markdown.
        kind: What it is.
        level: Depth of a heading, from 1, or of an item, from 0.
        mark: What stands before an item: ``-``, or its number.
    """

    text: str
    kind: BlockKind = "paragraph"
    level: int = 0
    mark: str = "-"


def markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as one Markdown text; items and rows that follow one another stand in adjacent lines."""
    kept = [block for block in blocks if block.text.strip()]
    if not kept:
        return ""
    written = [_written(kept[0])]
    for above, block in pairwise(kept):
        together = above.kind == block.kind and block.kind in {"item", "row"}
        written += ["\n" if together else SEPARATOR, _written(block)]
    return "".join(written)


def _written(block: Block) -> str:
    match block.kind:
        case "heading":
            return f"{'#' * min(_DEEPEST, max(1, block.level))} {one_line(block.text)}"
        case "item":
            indent = "  " * block.level
            return f"{indent}{block.mark} " + block.text.strip().replace("\n", f"\n{indent}  ")
        case "code":
            fence = "~~~" if "```" in block.text else "```"
            return f"{fence}\n{block.text.strip(chr(10))}\n{fence}"
        case "row":
            return one_line(block.text)
        case "paragraph":
            return block.text.strip()


def table(
    rows: Iterable[Sequence[str]], *, head: bool | None = None, inside: Iterable[Sequence[Block]] = ()
) -> Iterator[Block]:
    """Yield the rows of a table; a title that fills one cell above its head stands as text.

    Args:
        rows: Cells of each row.
        head: Whether the first row names the columns; absent, it is told from what stands in it.
        inside: What stands in tables within the cells of each row, and is read behind it.
    """
    pairs = zip_longest(([one_line(cell) for cell in row] for row in rows), inside, fillvalue=())
    kept = [(row, inner) for row, inner in pairs if any(row) or inner]
    cells = [row for row, _ in kept]
    start = next((place for place, row in enumerate(cells) if sum(map(bool, row)) > 1), len(cells))
    if start and len(max(cells, key=len)) == len(("label", "value")):
        head = is_over_values(cells[start:])
    names, body = head_and_body(cells[start:], head=head)
    lines = [JOINT.join(filter(None, row)) for row in cells[: len(cells) - len(body)]]
    if start < len(lines):
        lines[start:] = [*[""] * (len(lines) - start - 1), idle_head(names, body)]
    lines += named(names, body)
    for place, (text, (_, inner)) in enumerate(zip(lines, kept, strict=True)):
        yield Block(text, "paragraph" if place < start or len(kept) == 1 else "row")
        yield from inner


def head_and_body(
    rows: Sequence[Sequence[str]], *, head: bool | None = None
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the names of the columns, from one row or two, and the rows below; none without a head."""
    if head is None and rows[2:] and _is_in_two(*rows[:3]):
        return one_head(*rows[:2]), rows[2:]
    if head is None:
        head = bool(rows[1:]) and names_columns(rows[0]) and not (_is_alike(*rows[:2]) or _are_labelled(rows))
    if not rows[1:] or not head:
        return [], rows
    return rows[0], rows[1:]


def named(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines that name their columns; a row of a single cell is text."""
    return [row_text(names if _is_under(names, row) else [], row) for row in rows]


def idle_head(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a head as a line of its own where no row says one of its names, else nothing."""
    columns = list(zip_longest(*(row for row in rows if _is_under(names, row)), fillvalue=""))
    is_idle = any(name and not any(column) for name, column in zip_longest(names, columns, fillvalue=()))
    return JOINT.join(filter(None, names)) if is_idle else ""


def _is_under(names: Sequence[str], row: Sequence[str]) -> bool:
    return sum(map(bool, row)) > 1 or len(names) == len(row) == 1


def is_over_values(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether a row of names stands over one with values."""
    return [names_columns(row) for row in rows[:2]] == [True, False]


def _is_in_two(upper: Sequence[str], lower: Sequence[str], below: Sequence[str]) -> bool:
    """Tell whether two rows are one head: units under names, or names and years under what stands over several."""
    if _are_units(lower) or "" not in upper:
        return names_columns(upper) and _are_units(lower) and is_over_values([lower, below])
    is_head = all(not _is_value(cell) or _YEAR.fullmatch(cell) for cell in (*upper, *lower) if cell)
    return is_head and all(sum(map(bool, row)) > 1 for row in (upper, lower)) and not names_columns(below)


def _is_alike(upper: Sequence[str], lower: Sequence[str]) -> bool:
    """Tell whether a cell with a number in it is formed as the one below: "M8" over "M10" is no name."""
    forms = [[_DIGITS.sub("0", cell) for cell in row] for row in (upper, lower)]
    return any(
        "0" in above and above == below and not _YEAR.fullmatch(said)
        for said, above, below in zip(upper, *forms, strict=False)
    )


def _are_labelled(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether rows of two cells say one thing each: their numbers are in units of their own."""
    units = [
        match[1] for row in rows[1:] if len(row) == len(("label", "value")) and (match := _MEASURE.fullmatch(row[1]))
    ]
    return len(units) > 1 and len(set(units)) == len(units)


def _are_units(row: Sequence[str]) -> bool:
    return not row[0] and all(len(cell) <= _LONGEST_UNIT for cell in row)


def cell(blocks: Iterable[Block]) -> tuple[str, list[Block]]:
    """Return what a cell says, items of a list kept apart, and the rows of tables in it, which follow its own table."""
    kept = [one for one in blocks if one.text.strip()]
    own = [one for one in kept if one.kind != "row"]
    apart = all(one.kind == "item" for one in own)
    said = ", ".join(one.text.rstrip(",") for one in own) if apart else " ".join(one.text for one in own)
    return said, [one for one in kept if one.kind == "row"]


def one_head(upper: Sequence[str], lower: Sequence[str]) -> list[str]:
    """Return two rows of a head as one: "Price EUR" for EUR under Price."""
    names: list[str] = []
    over = ""
    for above, below in zip_longest(upper, lower, fillvalue=""):
        over = above or over
        names.append(below if over == below else f"{over} {below}".strip())
    return names


def names_columns(row: Sequence[str]) -> bool:
    """Tell whether a first row names columns: short, no sentence, and no number among its cells but years in a row."""
    filled = [cell for cell in row if cell]
    values = [cell for cell in filled if _is_value(cell)]
    return len(filled) > 1 and (not values or (values != filled and _are_years(values)))


def _are_years(cells: Sequence[str]) -> bool:
    return all(map(_YEAR.fullmatch, cells)) and {int(b) - int(a) for a, b in pairwise(cells)} in ({1}, {-1})


def _is_value(cell: str) -> bool:
    too_long = len(cell) > _LONGEST_NAME
    return too_long or cell.endswith(":") or bool(SENTENCE.search(cell) or _NUMBER.fullmatch(cell))


def row_text(head: Sequence[str], row: Sequence[str]) -> str:
    """Return a row as one line, "column: value; column: value", empty cells left out."""
    names = [*head, *("" for _ in range(len(row) - len(head)))]
    cells = zip(names, row, strict=False)
    return JOINT.join(f"{name.strip()}: {value}" if name.strip() else value for name, value in cells if value.strip())


def row_sections(lines: Sequence[str], heading: str = "") -> Iterator[Section]:
    """Yield the rows of a table, be it longer than what is cut at once."""
    for begin in range(0, len(lines), ROWS_A_SECTION):
        yield Section("\n".join(lines[begin : begin + ROWS_A_SECTION]), "table", heading=heading)


def one_line(text: str) -> str:
    """Return a text with single blanks in place of line ends and runs of blanks."""
    return " ".join(text.split())


def whole_number(text: str, *, least: int = 0, most: int = 1_000) -> int:
    """Return what an attribute counts, held between two bounds; the lower one for what is no number."""
    return min(most, max(least, int(text))) if text.isdecimal() and len(text) < _LONGEST_NUMBER else least
