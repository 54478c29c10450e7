"""Sessions out of the index: a page of them, one of them, and the names to filter by."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Any, Final

from spanforge.server.viewer.filters import Filter, encoded
from spanforge.server.viewer.index.figures import STATUSES
from spanforge.server.viewer.index.writer import Stored, storable

__all__ = [
    "Choices",
    "SessionPage",
    "SessionRow",
    "choices",
    "find",
    "session_page",
    "stored_events",
    "version",
    "where",
]

PAGE: Final = 50
_MOST_NAMES: Final = 200
_KEY: Final = re.compile(r"~([0-9a-f]{32})")
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")

_FIELDS: Final = (
    "key", "org", "session_id", "started", "ended", "status", "retriever", "latency", "grounding", "queries",
    "retrievals", "chunks", "input", "output", "errors", "events", "escalations", "ratings", "rating",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session, as its figures say.

    Attributes:
        started: Microseconds since the epoch.
        latency: Sum of its stages in microseconds.
        grounding: Mean grounding score in [0, 1]; None where none was measured.
        rating: Mean rating in [0, 1]; None where there is none.
    """

    key: str
    org: str
    session_id: str
    started: int
    ended: int
    status: str
    retriever: str
    latency: int
    grounding: float | None
    queries: int
    retrievals: int
    chunks: int
    input: int
    output: int
    errors: int
    events: int
    escalations: int
    ratings: int
    rating: float | None

    @property
    def ref(self) -> str:
        """What stands for it in an address: its id where that is plain, else its key."""
        return self.session_id if _PLAIN_ID.fullmatch(self.session_id) else f"~{self.key}"


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some sessions in order.

    Attributes:
        rows: At most a page of them.
        total: How many the filter lets through on all pages.
        following: The filter's `after` for the next page; empty on the last.
    """

    rows: list[SessionRow]
    total: int
    following: str


@dataclass(frozen=True, slots=True)
class Choices:
    """Names to choose from, sorted."""

    retrievers: list[str]
    models: list[str]
    orgs: list[str]


def _sorted_by(sort: str, order: str) -> str:
    if sort == "grounding":
        # Sessions without a score stand last either way.
        return f"COALESCE(grounding, {'-1' if order == 'desc' else '2'})"
    return {"tokens": "(input + output)"}.get(sort, sort)


def where(org: str | None, wanted: Filter) -> tuple[str, list[Any]]:
    """Return the condition that a filter makes, and its parameters.

    Args:
        org: The one organisation that may be seen; None for all, of which the filter may choose one.
        wanted: The filter.
    """
    since, until = wanted.moments
    org = wanted.org or None if org is None else org
    status = STATUSES.index(wanted.status) if wanted.status else None
    latency_min, latency_max = (
        None if value is None else value * 1000 for value in (wanted.latency_min, wanted.latency_max)
    )
    named = "(SELECT id FROM name WHERE kind = '{}' AND text = ?)"
    conditions: list[tuple[str, Any]] = [
        ("org = ?", None if org is None else storable(org)),
        ("started >= ?", since),
        ("started <= ?", until),
        ("status = ?", status),
        ("retriever = ?", wanted.retriever or None),
        ("grounding >= ?", wanted.grounding_min),
        ("grounding <= ?", wanted.grounding_max),
        ("latency >= ?", latency_min),
        ("latency <= ?", latency_max),
        (
            f"EXISTS (SELECT 1 FROM mention WHERE name = {named.format('model')} AND session = session.id)",
            wanted.model or None,
        ),
        (f"id IN (SELECT session FROM mention WHERE name = {named.format('digest')})", wanted.digest or None),
    ]
    if wanted.id:
        conditions += [("session_id >= ?", wanted.id), ("session_id < ?", f"{wanted.id}\U0010ffff")]
    kept = [(text, value) for text, value in conditions if value is not None]
    return " AND ".join(text for text, _ in kept) or "1", [value for _, value in kept]


def session_page(connection: sqlite3.Connection, org: str | None, wanted: Filter, *, size: int = PAGE) -> SessionPage:
    """Return one page of sessions; following `following` to its end visits each session once."""
    condition, values = where(org, wanted)
    total: int = connection.execute(f"SELECT count(*) FROM session WHERE {condition}", values).fetchone()[0]
    by, order = _sorted_by(wanted.sort, wanted.order), "DESC" if wanted.order == "desc" else "ASC"
    if (cursor := wanted.cursor) is not None:
        condition += f" AND ({by}, session_id, org) {'<' if order == 'DESC' else '>'} (?, ?, ?)"
        values += cursor
    rows = connection.execute(
        f"SELECT {', '.join(_FIELDS)}, {by} FROM session WHERE {condition} "
        f"ORDER BY {by} {order}, session_id {order}, org {order} LIMIT ?",
        (*values, size + 1),
    ).fetchall()
    more, rows = len(rows) > size, rows[:size]
    sessions = [_row(row) for row in rows]
    following = encoded(rows[-1][-1], sessions[-1].session_id, sessions[-1].org) if more else ""
    return SessionPage(sessions, total, following)


def find(connection: sqlite3.Connection, org: str | None, ref: str, chosen: str | None = None) -> list[SessionRow]:
    """Return the sessions that a part of an address stands for: one, none, or one for each organisation.

    Args:
        connection: To the index.
        org: The one organisation that may be seen; None for all.
        ref: A session id, or `~` and a key.
        chosen: Which organisation's is meant, where all may be seen.
    """
    key = _KEY.fullmatch(ref)
    condition, values = ("key = ?", [key[1]]) if key else ("session_id = ?", [storable(ref)])
    seen = chosen if org is None else org
    if seen is not None:
        condition, values = f"{condition} AND org = ?", [*values, storable(seen)]
    query = f"SELECT {', '.join(_FIELDS)} FROM session WHERE {condition} ORDER BY org LIMIT 10"
    return [_row(row) for row in connection.execute(query, values)]


def stored_events(connection: sqlite3.Connection, key: str, limit: int) -> list[Stored]:
    """Return where the events of a session stand, in order of emission."""
    rows = connection.execute(
        "SELECT event_id, source, place, line FROM event WHERE session = (SELECT id FROM session WHERE key = ?) "
        "ORDER BY event_id LIMIT ?",
        (key, limit),
    )
    return [Stored(*row) for row in rows]


def choices(connection: sqlite3.Connection, org: str | None) -> Choices:
    """Return the names that sessions can be filtered by, of what may be seen."""
    mine, values = ("1", []) if org is None else ("org = ?", [storable(org)])

    def names(query: str) -> list[str]:
        return [text for (text,) in connection.execute(query, values) if text]

    return Choices(
        names(f"SELECT DISTINCT retriever FROM session WHERE {mine} ORDER BY 1 LIMIT {_MOST_NAMES}"),
        names(
            "SELECT text FROM name WHERE kind = 'model' AND EXISTS (SELECT 1 FROM mention JOIN session "
            f"ON session.id = mention.session WHERE mention.name = name.id AND {mine}) ORDER BY 1 LIMIT {_MOST_NAMES}"
        ),
        names(f"SELECT org FROM tally WHERE what = '' ORDER BY 1 LIMIT {_MOST_NAMES}") if org is None else [],
    )


def version(connection: sqlite3.Connection, org: str | None) -> int:
    """Return a number that grows with what may be seen, and with nothing else."""
    mine, values = ("1", []) if org is None else ("org = ?", [storable(org)])
    found: int = connection.execute(
        f"SELECT COALESCE(sum(times), 0) FROM tally WHERE what = '' AND {mine}", values
    ).fetchone()[0]
    return found


def _row(row: tuple[Any, ...]) -> SessionRow:
    named: dict[str, Any] = dict(zip(_FIELDS, row, strict=False))
    named["status"] = STATUSES[named["status"]]
    return SessionRow(**named)
