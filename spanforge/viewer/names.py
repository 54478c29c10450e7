"""The names that sessions of a store can be filtered by, and which of them some sessions mention."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from spanforge.viewer.queries import MENTIONED, SessionRow, within

__all__ = ["choices", "mentions", "version"]

_MOST: Final = 200
_LONGEST: Final = 1_000
"""Characters of a name that can be chosen: every page repeats each."""


def choices(connection: sqlite3.Connection, org: str | None) -> dict[str, list[str]]:
    """Return the names that sessions can be filtered by, of what may be seen: sorted, by fields of the filter."""
    mine, values = within(org)

    def names(query: str) -> list[str]:
        return [text for (text,) in connection.execute(f"{query} LIMIT {_MOST}", values) if 0 < len(text) <= _LONGEST]

    def mentioned(kind: str) -> list[str]:
        return names(
            f"{_each('text', 'mention', f'kind = {kind!r}')} AND EXISTS (SELECT 1 FROM mention JOIN session "
            f"ON session.id = mention.session WHERE kind = '{kind}' AND mention.text = name.text AND {mine})"
        )

    retrievers = names(
        _each("retriever_name", "session", "1")
        + f" AND EXISTS (SELECT 1 FROM session WHERE retriever_name = name.text AND {mine})"
    )
    return {
        "retriever": retrievers,
        **{kind: mentioned(kind) for kind in MENTIONED if kind != "source"},
        "org": names("SELECT DISTINCT org_id FROM tally ORDER BY 1") if org is None else [],
    }


def mentions(
    connection: sqlite3.Connection, rows: Sequence[SessionRow], kind: str, known: Sequence[str]
) -> dict[tuple[str, str], list[str]]:
    """Return what sessions mention of a kind, by organisation and id.

    Args:
        connection: To the store.
        rows: The sessions, few.
        kind: `model` or `tag`.
        known: What may be mentioned: each is looked up for each session.
    """
    found: dict[tuple[str, str], list[str]] = {}
    ids = ", ".join("(?, ?)" for _ in rows)
    for org, session_id, text in connection.execute(
        f"WITH shown(id, org_id, session_id) AS (SELECT id, org_id, session_id FROM session "
        f"WHERE (session_id, org_id) IN (VALUES {ids})) SELECT org_id, session_id, text FROM shown, mention "
        f"WHERE kind = ? AND session = shown.id AND text IN ({', '.join('?' for _ in known)}) ORDER BY text",
        (*(part for row in rows for part in (row.session_id, row.org)), kind, *known),
    ):
        found.setdefault((org, session_id), []).append(text)
    return found


def _each(column: str, table: str, where: str) -> str:
    """Return a query for the distinct values of an indexed column that steps from one to the next."""
    return (
        f"WITH RECURSIVE name(text) AS (SELECT min({column}) FROM {table} WHERE {where} UNION ALL SELECT "
        f"(SELECT min({table}.{column}) FROM {table} WHERE {where} AND {table}.{column} > name.text) FROM name "
        "WHERE text IS NOT NULL) SELECT text FROM name WHERE text IS NOT NULL"
    )


def version(connection: sqlite3.Connection, org: str | None) -> int:
    """Return a number that grows with what may be seen, and with nothing else."""
    mine, values = within(org)
    found: int = connection.execute(f"SELECT COALESCE(sum(times), 0) FROM tally WHERE {mine}", values).fetchone()[0]
    return found
