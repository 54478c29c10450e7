"""Whole events out of a store: those of a session, of many sessions one after the other, and the latest."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import groupby
from typing import Any, Final

from spanforge import _clock
from spanforge.analysis import StoredSession, is_sound
from spanforge.analysis.prices import Pricing, priced
from spanforge.namespaces.event import Event
from spanforge.namespaces.stages import GENERATED
from spanforge.reader.decoding import events_in
from spanforge.viewer.queries import PAGE, SessionRow, within

__all__ = ["MOST_LINE", "events_of", "latest", "lay_prices", "stored_of"]

MOST_LINE: Final = 16 << 20
"""Bytes of a line that pages read."""
_LATEST: Final = 5_000
_AHEAD_US: Final = 86_400_000_000
"""Clocks differ, and by no more than a day where they are right."""


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
    mine, values = within(org)
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
