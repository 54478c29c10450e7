"""The table `session` of a sqlite store: the fold over its events, brought up to date by whoever writes them.

What has been folded is remembered by the order of arrival. So it does not matter which writer stored an event, nor
whether there was the table then: the next one goes on from there.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from spanforge import _clock
from spanforge._text import storable
from spanforge.exceptions import DecodeError
from spanforge.namespaces.event import Event, Identity
from spanforge.namespaces.stages import GENERATED, QUERY, RETRIEVED, SESSION
from spanforge.sessions.stored import StoredTotals, is_sound

__all__ = ["fold_events", "mentions", "refold", "sound_event", "unfold"]

_MOST: Final = 20_000
"""Events that one transaction folds: no writer waits long for another that found many left to it."""

_FAILED: Final = ("error", "timeout")
_UNNAMED: Final = "error"
"""What an error is called of which nothing is said but that it was one."""
_SUMMARY: Final = (
    "status", "retriever_name", "error_count", "error_type", "total_queries", "total_chunks_retrieved",
    "total_chunks_used", "chunk_ids_truncated", "total_input_tokens", "total_output_tokens", "avg_grounding_score",
    "min_grounding_score", "grounding_count", "retrieval_count", "rerank_count", "generation_count",
    "evaluation_count", "total_latency_ms", "query_latency_ms", "retrieval_latency_ms", "rerank_latency_ms",
    "generation_latency_ms", "evaluation_latency_ms", "duration_ms", "started_at", "ended_at", "end_reason",
    "partial_view", "conversation_id", "total_cost_usd",
)  # fmt: skip
_FOLD: Final = (
    "started_us", "first_event_at", "last_event_at", "events", "ended", "from_stages", "escalations", "ratings",
    "rating", "answers", "cited", "judged", "helpful", "reordered",
)  # fmt: skip
_UPDATE: Final = f"UPDATE session SET {', '.join(f'{name} = ?' for name in (*_SUMMARY, *_FOLD))} WHERE id = ?"  # noqa: S608  our own names
_FIND: Final = (
    "SELECT id, state FROM session JOIN session_state ON session_state.session = session.id "
    "WHERE session_id = ? AND org_id = ?"
)
_OWN: Final = "session_id = ? AND org_id = ?"
_MENTION: Final = "INSERT INTO mention VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times"
_TALLY: Final = "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times"
_DAMAGE: Final = "INSERT INTO damage VALUES (?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times"


class _Touched:
    """A session that events are added to."""

    def __init__(self, number: int, fold: StoredTotals) -> None:
        self.number, self.fold = number, fold
        self.mentions: Counter[tuple[str, str]] = Counter()


class _Batch:
    """The events of one transaction, by session.

    Args:
        connection: Inside the writer's transaction.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._touched: dict[tuple[str, str], _Touched] = {}
        self._tally: Counter[tuple[str, str]] = Counter()
        self.damage: Counter[str] = Counter()
        self.without_session = 0

    def add(self, event: Event) -> None:
        """Add a sound event."""
        if not event.session_id:
            self.without_session += 1
        else:
            who = storable(event.org_id), storable(event.session_id)
            if who not in self._touched:
                self._touched[who] = self._open(*who)
            self._touched[who].fold.add(event)
            self._touched[who].mentions.update(mentions(event))
            self._tally[who[0], storable(event.event_type)] += 1

    def save(self) -> None:
        for (_, session_id), touched in self._touched.items():
            self._connection.execute(_UPDATE, (*_row(session_id, touched.fold), touched.number))
            state = json.dumps(touched.fold.dump(), separators=(",", ":"))
            self._connection.execute("INSERT OR REPLACE INTO session_state VALUES (?, ?)", (touched.number, state))
            mentions = [(*what, touched.number, times) for what, times in touched.mentions.items()]
            self._connection.executemany(_MENTION, mentions)
        self._connection.executemany(_TALLY, [(*what, times) for what, times in self._tally.items()])
        self._connection.executemany(_DAMAGE, self.damage.items())

    def _open(self, org_id: str, session_id: str) -> _Touched:
        found = self._connection.execute(_FIND, (session_id, org_id)).fetchone()
        if found:
            return _Touched(found[0], StoredTotals.load(json.loads(found[1])))
        made = self._connection.execute("INSERT INTO session (org_id, session_id) VALUES (?, ?)", (org_id, session_id))
        return _Touched(made.lastrowid or 0, StoredTotals())


def fold_events(connection: sqlite3.Connection, known: Mapping[Identity, Event], added: int) -> None:
    """Add events that were stored and not folded yet to their sessions, as many as one transaction may.

    Args:
        connection: Inside the writer's transaction.
        known: Events of this transaction by their stored identity, which need not be read again.
        added: How many rows it has added.
    """
    [folded] = connection.execute("SELECT seq FROM folded").fetchone()
    rows = connection.execute(
        "SELECT seq, org_id, session_id, event_id FROM events WHERE seq > ? ORDER BY seq LIMIT ?", (folded, _MOST)
    ).fetchall()
    if len(rows) != added:
        known = {}  # others have left something, perhaps of the same identity
    batch = _Batch(connection)
    for seq, *identity in rows:
        event = known.get(tuple(identity)) or _read(connection, seq, batch.damage)
        if event is None:
            continue
        if is_sound(event):
            batch.add(event)
        else:
            batch.damage["payload"] += 1
    batch.save()
    if rows:
        connection.execute(
            "UPDATE folded SET seq = ?, without_session = without_session + ?", (rows[-1][0], batch.without_session)
        )


def refold(connection: sqlite3.Connection, session: tuple[str, str]) -> None:
    """Fold a session anew, of the events that are left of it.

    Args:
        connection: Inside the writer's transaction.
        session: Its id and its organisation.
    """
    batch = _Batch(connection)
    for event in _folded(connection, session):
        batch.add(event)
    batch.save()


def unfold(connection: sqlite3.Connection, number: int, session: tuple[str, str]) -> None:
    """Take what a session is found and counted by out of the tables, and leave its events.

    Args:
        connection: Inside the writer's transaction.
        number: Its row.
        session: Its id and its organisation.
    """
    events = _folded(connection, session)
    found = {mention for event in events for mention in mentions(event)}
    connection.executemany(
        "DELETE FROM mention WHERE kind = ? AND text = ? AND session = ?", [(*one, number) for one in found]
    )
    tally = Counter(storable(event.event_type) for event in events)
    connection.executemany(
        "UPDATE tally SET times = max(0, times - ?) WHERE org_id = ? AND event_type = ?",
        [(times, session[1], event_type) for event_type, times in tally.items()],
    )


def _folded(connection: sqlite3.Connection, session: tuple[str, str]) -> list[Event]:
    rows = connection.execute(f"SELECT CAST(line AS BLOB) FROM events WHERE {_OWN}", session)  # noqa: S608
    return [event for (line,) in rows if (event := sound_event(line)) is not None]


def sound_event(line: bytes) -> Event | None:
    """Return the event of a line; None where it is none, or its payload is not what its type says."""
    with suppress(DecodeError):
        event = Event.decode(line)
        if is_sound(event):
            return event
    return None


def _read(connection: sqlite3.Connection, seq: int, damage: Counter[str]) -> Event | None:
    [line] = connection.execute("SELECT CAST(line AS BLOB) FROM events WHERE seq = ?", (seq,)).fetchone()
    try:
        return Event.decode(line)
    except DecodeError as error:
        damage[str(error)] += 1
        return None


def _row(session_id: str, fold: StoredTotals) -> list[Any]:
    summary = fold.summary(session_id)
    values = [getattr(summary, name) for name in _SUMMARY]
    values += [_moment_us(summary.started_at) or _moment_us(fold.first[1]), fold.first[1], fold.last[1]]
    values += [fold.events, fold.ended, fold.from_stages, fold.escalations, fold.ratings, fold.rating]
    values += [fold.answers, fold.cited, fold.judged, fold.helpful, fold.reordered]
    return [storable(value) if isinstance(value, str) else value for value in values]


def _moment_us(text: str | None) -> int:
    """Return an ISO 8601 time as microseconds since the epoch; 0 where it cannot be read."""
    try:
        return max(0, _clock.parse_timestamp(text or "") // 1000)
    except (ValueError, OverflowError):
        return 0


def mentions(event: Event) -> list[tuple[str, str]]:
    """Return what an event mentions that sessions are found or counted by."""
    payload = event.payload
    found = [("actor", event.actor_id), *(("tag", f"{name}={value}") for name, value in event.tags.items())]
    if event.event_type == QUERY:
        found.append(("digest", payload["query_hash"]))
        found += [("pipeline", payload.get("pipeline_name", "")), ("namespace", payload.get("namespace", ""))]
    elif event.event_type == RETRIEVED:
        found += [("source", chunk.get("source", "")) for chunk in payload.get("chunks", ())]
    elif event.event_type == GENERATED:
        found.append(("model", payload.get("model", "unknown")))
    if event.event_type == SESSION:
        # Its status repeats those of its stages; what went wrong outside of them it says by name.
        found.append(("error", payload.get("error_type") or ""))
    elif payload.get("status") in _FAILED:
        found.append(("error", payload.get("error_message") or _UNNAMED))
    return [(kind, storable(text)) for kind, text in found if text]
