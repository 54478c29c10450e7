"""Selections as filter expressions of an engine, built from typed fields alone.

Users never write a filter expression. Field names come from a fixed list, numbers are written by this
module, and strings are quoted by the engine's own rule, so that no value can end its literal and go on as
code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from spanforge.reference.failures import InvalidInput
from spanforge.reference.index.base import Selection, filter_value
from spanforge.reference.models import Filter

_NUMERIC = frozenset({"page", "timestamp", "quality"})
_INTEGER_END = 2**63
_OPERATORS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine writes what differs.

    Attributes:
        quote: Writes a string literal.
        equals: The sign of equality.
        members: Writes a membership test from a field and literals.
        none: An expression that no row satisfies.
    """

    quote: Callable[[str], str]
    equals: str
    members: Callable[[str, Iterable[str]], str]
    none: str


SQL = Dialect(
    quote=lambda text: "'" + text.replace("\x00", "").replace("'", "''") + "'",
    equals="=",
    members=lambda field, literals: f"{field} IN ({', '.join(literals)})",
    none="1 = 0",
)
MILVUS = Dialect(
    quote=lambda text: json.dumps(text.replace("\x00", "")),
    equals="==",
    members=lambda field, literals: f"{field} in [{', '.join(literals)}]",
    none='chunk_id == ""',
)


def check_filter(condition: Filter) -> None:
    """Check that a filter's value fits its field.

    Raises:
        InvalidInput: A number for a text field, a text for a number field, a list for a comparison, or the
        reverse; a number that no field holds.
    """
    value = filter_value(condition.value)
    if (condition.op == "in") != isinstance(value, list):
        raise InvalidInput("filters: 'in' takes a list, every other operator one value.")
    values = value if isinstance(value, list) else [value]
    numeric = condition.field in _NUMERIC
    for item in values:
        if numeric is not (isinstance(item, int | float) and not isinstance(item, bool)):
            raise InvalidInput(f"filters: {condition.field} takes {'numbers' if numeric else 'texts'}.")
        if isinstance(item, float) and not math.isfinite(item):
            raise InvalidInput(f"filters: {condition.field} takes finite numbers.")
        if condition.field == "page" and not isinstance(item, int):
            raise InvalidInput("filters: page takes whole numbers; write 2, not 2.0.")
        if isinstance(item, int) and not -_INTEGER_END <= item < _INTEGER_END:
            raise InvalidInput(f"filters: {condition.field} takes numbers of at most 63 bits.")


def expression(selection: Selection, dialect: Dialect) -> str:
    """Return the selection as the engine's filter expression."""
    parts = [f"org_id {dialect.equals} {dialect.quote(selection.org_id)}"]
    for field, values in (
        ("data_source_id", selection.data_source_ids),
        ("document_id", selection.document_ids),
        ("chunk_id", selection.chunk_ids),
    ):
        if values is not None:
            parts.append(_members(field, values, dialect))
    if selection.excluding_chunk_ids:
        parts.append(f"NOT ({_members('chunk_id', selection.excluding_chunk_ids, dialect)})")
    parts.extend(_condition(condition, dialect) for condition in selection.filters)
    return " AND ".join(parts)


def _members(field: str, values: Iterable[str], dialect: Dialect) -> str:
    literals = [dialect.quote(value) for value in values]
    return dialect.members(field, literals) if literals else dialect.none


def _condition(condition: Filter, dialect: Dialect) -> str:
    check_filter(condition)
    value = filter_value(condition.value)
    if isinstance(value, list):
        literals = [_literal(item, dialect) for item in value]
        return dialect.members(condition.field, literals) if literals else dialect.none
    sign = dialect.equals if condition.op == "eq" else _OPERATORS[condition.op]
    return f"{condition.field} {sign} {_literal(value, dialect)}"


def _literal(value: str | float, dialect: Dialect) -> str:
    return dialect.quote(value) if isinstance(value, str) else repr(value)
