"""Records as columns: what the bulk engines read, made of the payload classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from enum import EnumType
from importlib import import_module
from itertools import chain, islice
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.namespaces.stages import EVALUATED, FEEDBACK, GENERATED, PAYLOADS, QUERY, RERANKED, RETRIEVED, SESSION
from spanforge.reader import Record

__all__ = ["FEW_VALUES", "SCHEMA", "arrow", "tables"]

# Arrow and Ibis say no types of their own: their names are values of any type.
arrow: Final[Any] = import_module("pyarrow")

_BATCH: Final = 4096
"""Events of which the values are held as Python objects at once."""
_GROUP: Final = 16
"""Batches that make one table, which is one row group of a file."""
_COLUMNS: Final[Mapping[Any, Any]] = {
    int: arrow.int64(),
    float: arrow.float64(),
    str: arrow.string(),
    bool: arrow.bool_(),
}
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    QUERY: ("latency_ms", "retriever_name"),
    RETRIEVED: ("latency_ms", "status"),
    RERANKED: ("latency_ms", "status"),
    GENERATED: (
        *("latency_ms", "status", "model", "chunk_ids_used"),
        *("prompt_tokens", "output_tokens", "grounding_score", "cost_usd"),
    ),
    EVALUATED: ("latency_ms",),
    FEEDBACK: ("value", "rating"),
    SESSION: ("error_type",),
}
"""What the fold asks of the payload of each type of event: to look for a field costs as much where it is absent."""


def _column(hint: Any) -> Any:
    """Return the type of a column that holds a field of this type."""
    if hint in _COLUMNS:
        return _COLUMNS[hint]
    origin = get_origin(hint)
    if origin is Literal or isinstance(hint, EnumType):
        return arrow.string()
    first, *_ = [one for one in get_args(hint) if one is not NoneType]
    return arrow.list_(_column(first)) if origin is tuple else _column(first)


def _columns(event_type: str, names: Iterable[str]) -> dict[str, Any]:
    hints = get_type_hints(PAYLOADS[event_type])
    return {name: _column(hints[name]) for name in names}


_PLACED: Final = ("position", "event_id", "timestamp", "session_id", "org_id", "tags")
_MADE: Final[Mapping[str, tuple[str, ...]]] = {RETRIEVED: ("chunk_ids",), SESSION: ("told",)}
"""What is made of a payload, behind the fields of it."""
_SUMMARY: Final = [field.name for field in fields(RAGSessionPayload) if field.name != "session_id"]
_TYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("event_type", *_PLACED), arrow.string()),
    "position": arrow.int64(),
    **dict.fromkeys(("tags", "chunk_ids"), arrow.list_(arrow.string())),
    "told": arrow.struct(_columns(SESSION, _SUMMARY)),
    **{name: kind for event_type, names in _FIELDS.items() for name, kind in _columns(event_type, names).items()},
}
SCHEMA: Final[Any] = arrow.schema(_TYPES)
"""One event a row. `position` is its place in the order of reading: of two that are one event the first counts. `told`
is what a summary says."""
_ABSENT: Final[Mapping[str, Any]] = {name: arrow.nulls(_BATCH, kind) for name, kind in _TYPES.items()}
FEW_VALUES: Final = ("event_type", "org_id", "status", "retriever_name", "model", "error_type", "rating")
"""Columns whose values are the same in many rows."""


def tables(records: Iterable[Record], start: int = 0) -> Iterator[Any]:
    """Give records as tables of some thousand rows.

    Args:
        records: Sound events.
        start: Position of the first one.
    """
    numbered = enumerate(records, start)
    while batches := list(chain.from_iterable(_batches(islice(numbered, _BATCH)) for _ in range(_GROUP))):
        # Of a hundred chunks each step that follows would take several times as long.
        yield arrow.Table.from_batches(batches).combine_chunks()


def _batches(numbered: Iterable[tuple[int, Record]]) -> Iterator[Any]:
    """Give a batch for each type of event among some records."""
    by_type: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for position, record in numbered:
        by_type[record.event_type].append(_row(position, record))
    for event_type, rows in by_type.items():
        yield _batch(event_type, rows)


def _row(position: int, record: Record) -> tuple[Any, ...]:
    """Return the values of a record, so that its dicts are gone before the garbage collector looks at them."""
    event_type, event_id, timestamp, session_id, org_id, tags, payload = record
    named = [f"{name}={value}" for name, value in tags.items()] if tags else None
    values = map(payload.get, _FIELDS.get(event_type, ()))
    if event_type == RETRIEVED:
        values = (*values, [chunk["chunk_id"] for chunk in payload.get("chunks", ())])
    elif event_type == SESSION:
        values = (*values, payload)
    return (position, event_id, timestamp, session_id, org_id, named, *values)


def _batch(event_type: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    names = (*_PLACED, *_FIELDS.get(event_type, ()), *_MADE.get(event_type, ()))
    columns = zip(names, zip(*rows, strict=True), strict=True)
    found = {name: arrow.array(column, _TYPES[name]) for name, column in columns}
    found["event_type"] = arrow.repeat(event_type, len(rows))
    return arrow.record_batch(
        [found[name] if name in found else _ABSENT[name].slice(0, len(rows)) for name in _TYPES], schema=SCHEMA
    )
