"""Charts of Word and slides: what is drawn, as the rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from spanforge.reference._extras import Untyped
from spanforge.reference.parsing.archive import attribute, nearest
from spanforge.reference.parsing.tree import Block, one_line, table

_PERCENT: Final = re.compile(r"0(?:\.(0+))?%")


def chart(root: Untyped) -> Iterator[Block]:
    """Yield the titles of a chart and of its axes, then each category with its value in each series."""
    if root is None:
        return
    for title in root.iter("{*}title"):
        yield Block(one_line("".join(node.text or "" for node in title.iter("{*}t", "{*}v"))))
    names: list[str] = [""]
    rows: dict[str, list[str]] = {}
    for series in root.iter("{*}ser"):
        categories, values = _points(series, {"cat", "xVal"}), _points(series, {"val", "yVal"})
        for place, value in values.items():
            row = rows.setdefault(place, [categories.get(place, "")])
            row += [*[""] * (len(names) - len(row)), value]
        names.append(one_line(" ".join(_points(series, {"tx"}).values())))
    if rows:
        yield from table([names, *rows.values()], head=True)


def _points(series: Untyped, names: set[str]) -> dict[str, str]:
    """Return the points of a series by their place, as they are shown; those of several levels together."""
    points: dict[str, str] = {}
    for one in nearest(series, names):
        form = next((_PERCENT.fullmatch(node.text or "") for node in one.iter("{*}formatCode")), None)
        for node in one.iter("{*}pt"):
            said = "".join(value.text or "" for value in node.iter("{*}v"))
            with suppress(ValueError):  # What is no number, such as "#N/A", is shown as it is.
                said = f"{float(said):.{len(form[1] or '')}%}" if form else said
            at = attribute(node, "idx")
            points[at] = f"{said} {points[at]}" if at in points else said
    return points
