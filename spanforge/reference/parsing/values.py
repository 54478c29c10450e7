"""JSON, JSON lines and notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.grounding.rows import JOINT
from spanforge.reference.parsing.base import Extract, Section
from spanforge.reference.parsing.coding import decode, normal
from spanforge.reference.parsing.html import parse_html
from spanforge.reference.parsing.tree import Block, markdown, one_line, row_sections

_DEEPEST: Final = 100


def parse_jsonl(content: bytes) -> Extract:
    """Return the values of a file with one JSON value a line, each as a row.

    Raises:
        ParseError: A line is not JSON.
    """
    lines = decode(content).split("\n")
    values = [_loaded(line, f"Line {number} is") for number, line in enumerate(lines, 1) if line.strip()]
    return Extract(_sections(values), nodes=(node for value in values for node in _nodes(value)))


def parse_json(content: bytes) -> Extract:
    """Return a JSON value: a list as rows, an object with lists in it under their names.

    Raises:
        ParseError: It is not JSON, which a file with one value a line is read as.
    """
    text = decode(content)
    value: object = None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return parse_jsonl(content)
    return Extract(_named(value, ""), nodes=_nodes(value))


def parse_notebook(content: bytes) -> Extract:
    """Return the cells of a notebook: text as Markdown, code and what it printed as code.

    Raises:
        ParseError: It is not JSON.
    """
    book = cast("dict[str, Any]", _loaded(decode(content), "The notebook is"))
    sheets = cast("list[dict[str, Any]]", book.get("worksheets") or [book])
    cells = [cell for sheet in sheets for cell in _list(sheet, "cells")]
    text = "\n\n".join(filter(None, (_cell(cell) for cell in cells)))
    return Extract([Section(text, "markdown")])


def _cell(cell: dict[str, Any]) -> str:
    source = _joined(cell.get("source", cell.get("input", "")))
    if cell.get("cell_type") != "code":
        level = cell.get("level")
        return f"{'#' * level} {source}" if cell.get("cell_type") == "heading" and isinstance(level, int) else source
    return markdown([Block(source, "code"), *(block for one in _list(cell, "outputs") for block in _output(one))])


def _output(output: dict[str, Any]) -> Iterator[Block]:
    data = output.get("data") or output
    if html := _joined(data.get("text/html", "")):
        yield from (Block(section.text) for section in parse_html(html.encode(), "utf-8").sections)
    elif plain := _joined(data.get("text/markdown", data.get("text/plain", data.get("text", "")))):
        yield Block(normal(plain), "code")


def _list(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found: object = fields.get(name)
    return [one for one in cast("list[Any]", found) if isinstance(one, dict)] if isinstance(found, list) else []


def _joined(text: object) -> str:
    return "".join(map(str, cast("list[object]", text))) if isinstance(text, list) else str(text or "")


def _loaded(text: str, what: str) -> object:
    with Translated((ValueError, RecursionError), lambda _: ParseError(f"{what} not JSON.")):
        return json.loads(text)


def _named(value: object, name: str) -> Iterator[Section]:
    match value:
        case list():
            yield from _sections(cast("list[object]", value), name)
        case dict():
            fields = cast("dict[str, object]", value)
            lists = {key: item for key, item in fields.items() if _is_rows(item)}
            yield from _sections([{key: item for key, item in fields.items() if key not in lists}], name)
            for key, item in lists.items():
                yield from _named(item, f"{name} > {key}" if name else key)
        case _:
            yield from _sections([value], name)


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in cast("list[object]", value))


def _sections(values: list[object], heading: str = "") -> Iterator[Section]:
    return row_sections([line for line in map(_flat, values) if line], heading)


def _flat(value: object) -> str:
    return JOINT.join(f"{name}: {text}" if name else text for name, text in _fields(value))


def _fields(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the values in a value, by the path to each: ``price eur``."""
    if depth > _DEEPEST:
        raise ParseError(f"A JSON value nests more than {_DEEPEST} levels; flatten it.")
    match value:
        case dict():
            for key, item in cast("dict[str, object]", value).items():
                yield from _fields(item, f"{name} {one_line(key)}".strip(), depth + 1)
        case list() if any(isinstance(one, dict | list) for one in cast("list[object]", value)):
            for item in cast("list[object]", value):
                yield from _fields(item, name, depth + 1)
        case list():
            if texts := [_scalar(one) for one in cast("list[object]", value)]:
                yield name, ", ".join(texts)
        case None | "":
            return
        case _:
            yield name, _scalar(value)


def _scalar(value: object) -> str:
    return one_line(normal(value)) if isinstance(value, str) else json.dumps(value)


def _nodes(value: object) -> Iterator[str]:
    return (text for _, text in _fields(value))
