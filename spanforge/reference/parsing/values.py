"""JSON, JSON lines and notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

from spanforge.reference.failures import ParseError, Translated
from spanforge.reference.grounding.rows import JOINT
from spanforge.reference.parsing.base import SEPARATOR, Extract, Section
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
    return Extract(_sections(values), nodes=_nodes(values))


def parse_json(content: bytes) -> Extract:
    """Return a JSON value: a list as rows, an object with lists in it under their names.

    Raises:
        ParseError: It is not JSON, which a file with one value a line is read as.
    """
    try:
        value: object = json.loads(decode(content))
    except (ValueError, RecursionError):
        return parse_jsonl(content)
    return Extract(_named(value, ""), nodes=_nodes([value]))


def parse_notebook(content: bytes) -> Extract:
    """Return the cells of a notebook: text as Markdown, code and what it printed as code.

    Raises:
        ParseError: It is not JSON.
    """
    book = cast("dict[str, Any]", _loaded(decode(content), "The notebook is"))
    cells = [cell for sheet in _list(book, "worksheets") or [book] for cell in _list(sheet, "cells")]
    return Extract([Section(SEPARATOR.join(filter(None, map(_cell, cells))), "markdown")])


def _cell(cell: dict[str, Any]) -> str:
    source = _joined(cell.get("source", cell.get("input", "")))
    kind, level = cell.get("cell_type"), cell.get("level")
    if kind == "code":
        return markdown([Block(source, "code"), *(block for one in _list(cell, "outputs") for block in _output(one))])
    return markdown([Block(source, "heading", level)]) if kind == "heading" and isinstance(level, int) else source


def _output(output: dict[str, Any]) -> Iterator[Block]:
    data = output.get("data") or output
    if html := _joined(data.get("text/html")):
        yield from (Block(section.text) for section in parse_html(html.encode(), "utf-8").sections)
    elif plain := _joined(data.get("text/markdown") or data.get("text/plain") or data.get("text")):
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
    """Yield a list as rows; of an object, first what is no list of rows, then each such list under its name."""
    if not isinstance(value, dict):
        yield from _sections(cast("list[object]", value) if isinstance(value, list) else [value], name)
        return
    fields = cast("dict[str, object]", value)
    yield from _sections([{key: item for key, item in fields.items() if not _is_rows(item)}], name)
    for key, item in fields.items():
        if _is_rows(item):
            yield from _named(item, f"{name} > {key}" if name else key)


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in cast("list[object]", value))


def _sections(values: list[object], heading: str = "") -> Iterator[Section]:
    rows = (JOINT.join(f"{name}: {text}" if name else text for name, text in _fields(value)) for value in values)
    return row_sections(list(filter(None, rows)), heading)


def _nodes(values: list[object]) -> Iterator[str]:
    return (text for value in values for _, text in _fields(value))


def _fields(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the values in a value, by the path to each: ``price eur``."""
    if depth > _DEEPEST:
        raise ParseError(f"A JSON value nests more than {_DEEPEST} levels; flatten it.")
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _fields(item, f"{name} {one_line(key)}".strip(), depth + 1)
    elif _is_rows(value):
        for item in cast("list[object]", value):
            yield from _fields(item, name, depth + 1)
    elif value is not None:
        texts = map(_scalar, cast("list[object]", value) if isinstance(value, list) else [value])
        if text := ", ".join(texts):
            yield name, text


def _scalar(value: object) -> str:
    return one_line(normal(value)) if isinstance(value, str) else json.dumps(value)
