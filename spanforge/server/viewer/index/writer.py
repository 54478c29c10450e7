"""Puts events into the index: each once, its session's figures brought up to date, its names counted."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces import PAYLOADS
from spanforge.namespaces._payload import Payload
from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import RAGSpanPayload, RetrievalQueryPayload, RetrievalResultPayload
from spanforge.server.viewer.index.figures import COLUMNS, Figures

__all__ = ["Placed", "Stored", "Writer", "key_of"]

Placed = tuple[Event, int, bytes | None]
"""An event, its place in its source, and its line where that must be kept."""

_UPDATE: Final = f"UPDATE session SET {', '.join(f'{name} = ?' for name in COLUMNS)} WHERE id = ?"
_PLACE: Final = (
    "INSERT INTO event (session, event_id, source, place, line) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_REPLACE: Final = "UPDATE event SET source = ?, place = ?, line = ? WHERE session = ? AND event_id = ?"


class Stored(NamedTuple):
    """Where an event stands (see the table `event`)."""

    event_id: str
    source: int
    place: int
    line: bytes | None


class _Batch:
    """What a batch says of one session."""

    def __init__(self, number: int, figures: Figures) -> None:
        self.number, self.figures = number, figures
        self.names: Counter[tuple[str, str]] = Counter()


class Writer:
    """The one writer of an index.

    Args:
        connection: From `schema.create`; it becomes the writer's own.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        """Close the index."""
        self._connection.close()

    def write(self, source: int, events: Iterable[Placed], damaged: Counter[str]) -> int:
        """Add a batch of events, in one transaction.

        Args:
            source: Number of the source they come from.
            events: In any order, repeats included; an event that is known is only given its new place.
            damaged: Counts those left out because their payload is not what their type says.

        Returns:
            How many belong to no session.
        """
        # Read first, written then: while the transaction is open, no page waits for the reading of lines.
        read = list(_read(events, damaged))
        touched: dict[tuple[str, str], _Batch] = {}
        tally: Counter[tuple[str, str]] = Counter()
        unsessioned = 0
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for (event, place, line), payload in read:
                if not event.session_id:
                    unsessioned += 1
                    continue
                who = storable(event.org_id), storable(event.session_id)
                batch = touched.get(who) or self._open(who)
                touched[who] = batch
                event_id = storable(event.event_id)
                if self._connection.execute(_PLACE, (batch.number, event_id, source, place, line)).rowcount:
                    batch.figures.add(event, payload)
                    batch.names.update(_names(payload))
                    tally[who[0], storable(event.event_type)] += 1
                else:
                    self._connection.execute(_REPLACE, (source, place, line, batch.number, event_id))
            for batch in touched.values():
                self._save(batch)
            self._count(tally)
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        return unsessioned

    def _open(self, who: tuple[str, str]) -> _Batch:
        found = self._connection.execute(
            "SELECT id, state FROM session JOIN fold ON fold.session = session.id WHERE session_id = ? AND org = ?",
            (who[1], who[0]),
        ).fetchone()
        if found:
            return _Batch(found[0], Figures.load(found[1]))
        number = self._connection.execute(
            "INSERT INTO session (org, session_id, key) VALUES (?, ?, ?)", (*who, key_of(*who))
        ).lastrowid
        return _Batch(number or 0, Figures())

    def _save(self, batch: _Batch) -> None:
        self._connection.execute(_UPDATE, (*batch.figures.row(), batch.number))
        self._connection.execute("INSERT OR REPLACE INTO fold VALUES (?, ?)", (batch.number, batch.figures.dump()))
        for (kind, text), times in batch.names.items():
            self._connection.execute("INSERT OR IGNORE INTO name (kind, text) VALUES (?, ?)", (kind, text))
            self._connection.execute(
                "INSERT INTO mention SELECT id, ?, ? FROM name WHERE kind = ? AND text = ? "
                "ON CONFLICT DO UPDATE SET times = times + excluded.times",
                (batch.number, times, kind, text),
            )

    def _count(self, tally: Counter[tuple[str, str]]) -> None:
        by_org: defaultdict[str, int] = defaultdict(int)
        for (org, _), times in tally.items():
            by_org[org] += times
        rows = [(org, what, times) for (org, what), times in tally.items()]
        rows += [(org, "", times) for org, times in by_org.items()]
        self._connection.executemany(
            "INSERT INTO tally VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times", rows
        )


def storable(text: str) -> str:
    """Return text that SQLite takes: lone surrogates, which it does not, stand as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def key_of(org: str, session_id: str) -> str:
    """Return 32 hex digits that stand for a session in addresses, whatever its id is made of."""
    return sha256(json.dumps([org, session_id]).encode()).hexdigest()[:32]


def _read(events: Iterable[Placed], damaged: Counter[str]) -> Iterator[tuple[Placed, Payload | None]]:
    for placed in events:
        kind = PAYLOADS.get(placed[0].event_type)
        try:
            yield placed, None if kind is None else kind.from_dict(placed[0].payload)
        except (InvalidPayloadError, TypeError):
            # TypeError: a required field is missing; it names the field and nothing else.
            damaged["payload"] += 1


def _names(payload: Payload | None) -> list[tuple[str, str]]:
    """Return what an event mentions that sessions are found or counted by."""
    found: list[tuple[str, Any]] = []
    match payload:
        case RetrievalQueryPayload():
            found = [("digest", payload.query_hash)]
        case RetrievalResultPayload():
            found = [("source", chunk.source) for chunk in payload.chunks]
        case RAGSpanPayload():
            found = [("model", payload.model)]
        case _:
            pass
    return [(kind, storable(text)) for kind, text in found if text]
