"""Sessions out of a store: a page of them, one of them, and the names to filter by."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import base64
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import groupby
from typing import Any, Final

from spanforge import _clock
from spanforge._text import storable
from spanforge.analysis import StoredSession, is_sound
from spanforge.analysis.prices import Pricing, priced
from spanforge.namespaces.event import Event
from spanforge.namespaces.stages import GENERATED, STAGE_WORDS
from spanforge.reader.decoding import events_in
from spanforge.viewer.filters import Filter, encoded, named
from spanforge.viewer.shown import score, stars, visible

__all__ = [
    "EMPTY",
    "WORTH_A_LOOK",
    "SessionPage",
    "SessionRow",
    "choices",
    "events_of",
    "find",
    "latest",
    "lay_prices",
    "mentions",
    "neighbours",
    "ref_of",
    "session_page",
    "session_rows",
    "stored_of",
    "turns",
    "version",
    "where",
]

PAGE: Final = 50
_MOST_NAMES: Final = 200
_LONGEST_NAME: Final = 1_000
"""Characters of a name that can be chosen: every page repeats each."""
MOST_LINE: Final = 16 << 20
_LATEST: Final = 5_000
_AHEAD_US: Final = 86_400_000_000
"""Clocks differ, and by no more than a day where they are right."""
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
_MENTIONED: Final = ("model", "pipeline", "namespace", "actor", "source", "tag", "error")
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
        *((mentions.format(kind=kind), getattr(wanted, kind) or None) for kind in _MENTIONED),
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


def events_of(connection: sqlite3.Connection, row: SessionRow, limit: int) -> list[Event]:
    """Return the events of a session that it is added up of, in order of emission."""
    lines = connection.execute(
        "SELECT CAST(line AS BLOB) FROM events WHERE session_id = ? AND org_id = ? AND length(line) <= ? "
        "ORDER BY event_id LIMIT ?",
        (row.session_id, row.org, MOST_LINE, limit),
    )
    return [event for (line,) in lines for event in events_in(line, Counter()) if is_sound(event)]


def latest(connection: sqlite3.Connection, org: str | None) -> list[tuple[int, Event]]:
    """Return the latest events of sessions, each behind its time in microseconds since the epoch; the last first.

    They are a page of them, out of the last few thousand of all by arrival and by the text of their times, which tells
    their order only where all write it alike. 0 stands for a time that cannot be read, or that has not come yet.
    """
    mine, values = _mine(org)
    rows = connection.execute(
        f"WITH late(seq) AS (SELECT * FROM (SELECT seq FROM events ORDER BY seq DESC LIMIT {_LATEST}) "
        f"UNION SELECT * FROM (SELECT seq FROM events ORDER BY timestamp DESC LIMIT {_LATEST})) "
        "SELECT timestamp, event_id, seq FROM late JOIN events USING (seq) "
        f"WHERE {mine} AND (session_id, org_id) IN (SELECT session_id, org_id FROM session) AND length(line) <= ?",
        (*values, MOST_LINE),
    )
    until = _clock.wall_ns() // 1000 + _AHEAD_US
    timed = ((us if (us := _moment_us(text)) <= until else 0, event_id, seq) for text, event_id, seq in rows)
    found: list[tuple[int, Event]] = []
    for us, _, seq in nlargest(PAGE, timed):
        [line] = connection.execute("SELECT CAST(line AS BLOB) FROM events WHERE seq = ?", (seq,)).fetchone()
        found += [(us, event) for event in events_in(line, Counter())]
    return found


def _moment_us(text: str) -> int:
    try:
        return max(0, _clock.parse_timestamp(text) // 1000)
    except (ValueError, OverflowError):
        return 0


def stored_of(
    connection: sqlite3.Connection, condition: str, values: Sequence[Any] = (), *, of: str = "1"
) -> Iterator[tuple[int, str, StoredSession]]:
    """Give the sessions that a condition lets through, one after the other: row, organisation and sound events.

    Args:
        connection: To the store.
        condition: Which sessions, with `values` bound in it.
        values: Those.
        of: Which of their events.
    """
    rows = connection.execute(
        f"WITH wanted AS (SELECT id, org_id, session_id FROM session WHERE {condition}) "
        "SELECT wanted.id, wanted.org_id, wanted.session_id, CAST(line AS BLOB) FROM wanted JOIN events "
        "ON events.session_id = wanted.session_id AND events.org_id = wanted.org_id AND length(line) <= ? "
        f"WHERE {of} ORDER BY wanted.id",
        (*values, MOST_LINE),
    )
    for (number, org, session_id), lines in groupby(rows, key=lambda row: row[:3]):
        events = (event for *_, line in lines for event in events_in(line, Counter()))
        yield number, org, StoredSession(session_id, (event for event in events if is_sound(event)))


def lay_prices(connection: sqlite3.Connection, pricing: Pricing) -> None:
    """Let a connection see what sessions cost by some prices, where they do not say it; the store stays as it is."""
    unpriced = "total_cost_usd IS NULL AND from_stages AND generation_count > 0"
    unknown = stored_of(connection, unpriced, of=f"event_type = '{GENERATED}'")
    costs = ((number, priced(session, pricing).summary.total_cost_usd) for number, _, session in unknown)
    connection.execute("CREATE TEMP TABLE estimate (session INTEGER PRIMARY KEY, cost REAL)")
    connection.executemany("INSERT INTO estimate VALUES (?, ?)", costs)
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(session)") if name != "total_cost_usd"]
    # A view of the same name stands before the table.
    connection.execute(
        f"CREATE TEMP VIEW session AS SELECT {', '.join(columns)}, COALESCE(total_cost_usd, cost) AS total_cost_usd "
        "FROM main.session LEFT JOIN estimate ON estimate.session = main.session.id"
    )


def choices(connection: sqlite3.Connection, org: str | None) -> dict[str, list[str]]:
    """Return the names that sessions can be filtered by, of what may be seen: sorted, by fields of the filter."""
    mine, values = _mine(org)

    def names(query: str) -> list[str]:
        return [
            text
            for (text,) in connection.execute(f"{query} LIMIT {_MOST_NAMES}", values)
            if 0 < len(text) <= _LONGEST_NAME
        ]

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
        **{kind: mentioned(kind) for kind in _MENTIONED if kind != "source"},
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


def _mine(org: str | None) -> tuple[str, list[str]]:
    return ("1", []) if org is None else ("org_id = ?", [storable(org)])


def version(connection: sqlite3.Connection, org: str | None) -> int:
    """Return a number that grows with what may be seen, and with nothing else."""
    mine, values = _mine(org)
    found: int = connection.execute(f"SELECT COALESCE(sum(times), 0) FROM tally WHERE {mine}", values).fetchone()[0]
    return found


def _row(row: tuple[Any, ...]) -> SessionRow:
    return SessionRow(**dict(zip(_FIELDS, row, strict=False)))
