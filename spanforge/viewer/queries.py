"""Sessions out of a store, by a filter or by what stands for them in an address: a page of them, or one."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import base64
import json
import re
import sqlite3
from dataclasses import dataclass
from typing import Any, Final

from spanforge._text import storable
from spanforge.namespaces.stages import STAGE_WORDS
from spanforge.viewer.filters import Filter, encoded, named
from spanforge.viewer.shown import score, stars, visible

__all__ = [
    "EMPTY",
    "MENTIONED",
    "PAGE",
    "WORTH_A_LOOK",
    "SessionPage",
    "SessionRow",
    "find",
    "neighbours",
    "ref_of",
    "session_page",
    "session_rows",
    "turns",
    "where",
    "within",
]

PAGE: Final = 50
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")

_FIELDS: Final = {
    "org": "org_id",
    "session_id": "session_id",
    "started": "started_us",
    "ended": "ended",
    "status": "status",
    "retriever": "retriever_name",
    "latency": "round(total_latency_ms * 1000)",
    "grounding": "avg_grounding_score",
    "queries": "total_queries",
    "retrievals": "retrieval_count",
    "chunks": "total_chunks_retrieved",
    "input": "total_input_tokens",
    "output": "total_output_tokens",
    "errors": "error_count",
    "events": "events",
    "escalations": "escalations",
    "ratings": "ratings",
    "rating": "rating",
    "error": "error_type",
    "conversation": "conversation_id",
}
_SELECT: Final = f"SELECT {', '.join(_FIELDS.values())}"
EMPTY: Final = "retrieval_count > 0 AND total_chunks_retrieved = 0 AND status <> 'error'"
"""Nothing was found, and nothing failed."""
_REASONS: Final = ("rating < 0.75", "avg_grounding_score < 0.5", "escalations > 0")
WORTH_A_LOOK: Final = f"({' OR '.join(_REASONS)})"
"""Somebody found it not helpful, it is poorly grounded, or a human was asked for."""
_MARKED: Final = {
    "worth a look": WORTH_A_LOOK,
    "empty": EMPTY,
    "escalated": "escalations > 0",
    "rated low": "rating < 0.5",
    "rated": "rating IS NOT NULL",
    "open": "NOT ended",
}
_TURNS: Final = (
    "WITH wanted(talk) AS (SELECT ?) SELECT turn.id FROM wanted, session AS turn WHERE turn.conversation_id = talk "
    "UNION SELECT turn.id FROM wanted, session AS turn WHERE turn.session_id = talk"
)
"""Sessions of a conversation: the first has its id, the others name it."""
MENTIONED: Final = ("model", "pipeline", "namespace", "actor", "source", "tag", "error")
"""Fields of the filter that stand for what a session mentions."""
_ANYBODYS: Final = "id IN (SELECT session FROM mention WHERE kind = '{kind}' AND text = ?)"
_OWN: Final = "EXISTS (SELECT 1 FROM mention WHERE kind = '{kind}' AND text = ? AND session = session.id)"
"""Two ways to ask for a name: the first costs what all sessions do that have it, the second what the sessions of one
organisation do, however many others have it."""
_SORTED_BY: Final = {
    "started": "started_us",
    "latency": "total_latency_ms",
    "tokens": "(total_input_tokens + total_output_tokens)",
    "chunks": "total_chunks_retrieved",
    "errors": "error_count",
    **{stage: f"{stage}_latency_ms" for stage in STAGE_WORDS},
    "worst": f"min(COALESCE(rating, 1.0), COALESCE(avg_grounding_score, 1.0)) - "
    f"({' + '.join(f'COALESCE({reason}, 0)' for reason in _REASONS)})",
}


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session, as its figures say.

    Attributes:
        started: Microseconds since the epoch.
        latency: Sum of its stages in microseconds.
        grounding: Mean grounding score in [0, 1]; None where none was measured.
        rating: Mean rating in [0, 1]; None where there is none.
        error: Class or code of its first error.
        conversation: The conversation it is a turn of.
    """

    org: str
    session_id: str
    started: int
    ended: int
    status: str
    retriever: str
    latency: float
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
    error: str | None
    conversation: str | None

    @property
    def reasons(self) -> list[str]:
        """Why a human should look at it, where one should."""
        grounded = self.grounding is not None and self.grounding < 0.5  # noqa: PLR2004  as WORTH_A_LOOK has it
        unhelpful = self.rating is not None and self.rating < 0.75  # noqa: PLR2004  likewise
        found = (
            f"grounding {score(self.grounding)}" if grounded else "",
            f"rated {stars(self.rating)} of 5" if unhelpful else "",
            "escalated" if self.escalations else "",
            f"error {visible(self.error, 40)}" if self.error else "",
        )
        return [reason for reason in found if reason]

    @property
    def ref(self) -> str:
        """What stands for it in an address: its id where that is plain, else its organisation and id in letters."""
        return self.session_id if _PLAIN_ID.fullmatch(self.session_id) else ref_of(self.org, self.session_id)


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


def ref_of(org: str, session_id: str) -> str:
    """Return what stands for any session in an address, whatever its id is made of."""
    return f"~{base64.urlsafe_b64encode(json.dumps([org, session_id]).encode()).decode().rstrip('=')}"


def _referred(ref: str) -> tuple[str, str] | None:
    """Read what `ref_of` wrote; None where it is something else."""
    try:
        found = json.loads(base64.urlsafe_b64decode(f"{ref[1:]}{'=' * (-len(ref[1:]) % 4)}"))
    except (ValueError, RecursionError):
        return None
    match found:
        case [str() as org, str() as session_id]:
            return storable(org), storable(session_id)
        case _:
            return None


def _sorted_by(sort: str, order: str) -> str:
    if sort == "grounding":
        # Sessions without a score stand last either way.
        return f"COALESCE(avg_grounding_score, {'-1' if order == 'desc' else '2'})"
    return _SORTED_BY[sort]


def where(org: str | None, wanted: Filter) -> tuple[str, list[Any]]:
    """Return the condition that a filter makes, and its parameters.

    Args:
        org: The one organisation that may be seen; None for all, of which the filter may choose one.
        wanted: The filter.
    """
    since, until = wanted.moments
    mentions = _ANYBODYS if org is None else _OWN
    org = wanted.org or None if org is None else org
    conditions: list[tuple[str, Any]] = [
        ("org_id = ?", None if org is None else storable(org)),
        ("started_us >= ?", since),
        ("started_us <= ?", until),
        ("status = ?", wanted.status or None),
        ("retriever_name = ?", wanted.retriever or None),
        ("avg_grounding_score >= ?", wanted.grounding_min),
        ("avg_grounding_score <= ?", wanted.grounding_max),
        ("total_latency_ms >= ?", wanted.latency_min),
        ("total_latency_ms <= ?", wanted.latency_max),
        (_ANYBODYS.format(kind="digest"), wanted.digest or None),
        *((mentions.format(kind=kind), getattr(wanted, kind) or None) for kind in MENTIONED),
        (f"id IN ({_TURNS})", wanted.conversation or None),
        (f"({_MARKED[wanted.mark]}) = ?" if wanted.mark else "", 1 if wanted.mark else None),
    ]
    if wanted.id:
        conditions += [("session_id >= ?", wanted.id), ("session_id < ?", f"{wanted.id}\U0010ffff")]
    kept = [(text, [value]) for text, value in conditions if value is not None]
    if wanted.without:
        part, values = where(org, Filter.parse(named(wanted.without)))
        kept.append((f"NOT ({part})", values))
    return " AND ".join(text for text, _ in kept) or "1", [value for _, values in kept for value in values]


def session_page(connection: sqlite3.Connection, org: str | None, wanted: Filter, *, size: int = PAGE) -> SessionPage:
    """Return one page of sessions; following `following` to its end visits each session once."""
    condition, values = where(org, wanted)
    total: int = connection.execute(f"SELECT count(*) FROM session WHERE {condition}", values).fetchone()[0]
    found = _in_order(connection, org, wanted, size + 1)
    rows = [_row(row) for row in found[:size]]
    following = encoded(found[size - 1][-1], rows[-1].session_id, rows[-1].org) if len(found) > size else ""
    return SessionPage(rows, total, following)


def session_rows(connection: sqlite3.Connection, org: str | None, wanted: Filter, most: int) -> list[SessionRow]:
    """Return the first sessions that a filter lets through, without counting the others."""
    return [_row(row) for row in _in_order(connection, org, wanted, most)]


def _in_order(connection: sqlite3.Connection, org: str | None, wanted: Filter, most: int) -> list[tuple[Any, ...]]:
    """Return the first sessions as they are stored, each with what it is sorted by at its end."""
    condition, values = where(org, wanted)
    by, order = _sorted_by(wanted.sort, wanted.order), "DESC" if wanted.order == "desc" else "ASC"
    if (cursor := wanted.cursor) is not None:
        condition += f" AND ({by}, session_id, org_id) {'<' if order == 'DESC' else '>'} (?, ?, ?)"
        values += cursor
    return connection.execute(
        f"{_SELECT}, {by} FROM session WHERE {condition} "
        f"ORDER BY {by} {order}, session_id {order}, org_id {order} LIMIT ?",
        (*values, most),
    ).fetchall()


def find(connection: sqlite3.Connection, org: str | None, ref: str, chosen: str | None = None) -> list[SessionRow]:
    """Return the sessions that a part of an address stands for: one, none, or one for each organisation.

    Args:
        connection: To the store.
        org: The one organisation that may be seen; None for all.
        ref: A session id, or what `ref_of` gave.
        chosen: Which organisation's is meant, where all may be seen.
    """
    referred = _referred(ref) if ref.startswith("~") else None
    condition, values = "session_id = ?", [referred[1] if referred else storable(ref)]
    if referred is not None:
        condition, values = f"{condition} AND org_id = ?", [*values, referred[0]]
    seen = chosen if org is None else org
    if seen is not None:
        condition, values = f"{condition} AND org_id = ?", [*values, storable(seen)]
    query = f"{_SELECT} FROM session WHERE {condition} ORDER BY org_id LIMIT 10"
    return [_row(row) for row in connection.execute(query, values)]


def neighbours(connection: sqlite3.Connection, row: SessionRow) -> tuple[SessionRow | None, SessionRow | None]:
    """Return the sessions of the same organisation that began before and after one, None where there is none."""

    def next_to(sign: str, order: str) -> SessionRow | None:
        found = connection.execute(
            f"{_SELECT} FROM session WHERE org_id = ? AND (started_us, session_id) {sign} (?, ?) "
            f"ORDER BY started_us {order}, session_id {order} LIMIT 1",
            (row.org, row.started, row.session_id),
        ).fetchone()
        return None if found is None else _row(found)

    return next_to("<", "DESC"), next_to(">", "ASC")


def turns(connection: sqlite3.Connection, row: SessionRow) -> list[SessionRow]:
    """Return the sessions of a session's conversation in order, itself among them."""
    found = connection.execute(
        # With a plus, SQLite does not look through the whole organisation for the few.
        f"{_SELECT} FROM session WHERE +org_id = ? AND id IN ({_TURNS}) ORDER BY started_us, session_id LIMIT {PAGE}",
        (row.org, row.conversation or row.session_id),
    )
    return [_row(one) for one in found]


def within(org: str | None) -> tuple[str, list[str]]:
    """Return the condition that keeps to one organisation, or to none, and its parameters."""
    return ("1", []) if org is None else ("org_id = ?", [storable(org)])


def _row(row: tuple[Any, ...]) -> SessionRow:
    return SessionRow(**dict(zip(_FIELDS, row, strict=False)))
