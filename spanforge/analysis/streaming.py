"""Sessions folded as their events come, in memory that does not grow with their number."""

from __future__ import annotations

import marshal
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Final, TypeAlias

from spanforge.analysis.filters import SessionFilter
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.reader import Record
from spanforge.sdk import StoredTotals

__all__ = ["FoldedSession", "SessionFolder"]

_HOT: Final = 10_000
"""Sessions held in memory; the ones that came first wait in a scratch database."""
_NEWEST: Final = attrgetter("started_at", "session_id", "org_id")
_Key: TypeAlias = tuple[str, str]


class FoldedSession:
    """What the stored events of one session add up to.

    Attributes:
        org_id: The organisation it belongs to; ids of sessions count within it.
        session_id: The session.
        fold: What its events add up to.
        models: Models that generated in it.
        tags: Tags of its events, the last one read of each name.
        event_ids: Ids of the events seen: one that is stored twice counts once.
    """

    __slots__ = ("event_ids", "fold", "models", "org_id", "session_id", "tags")

    def __init__(self, org_id: str, session_id: str) -> None:
        self.org_id = org_id
        self.session_id = session_id
        self.fold = StoredTotals()
        self.models: set[str] = set()
        self.tags: set[tuple[str, str]] = set()
        self.event_ids: set[str] = set()

    def add(self, record: Record) -> bool:
        """Add an event of this session; False where it had been added before."""
        if record.event_id in self.event_ids:
            return False
        self.event_ids.add(record.event_id)
        self.fold.add(record)
        if record.tags:
            self.tags.update(record.tags.items())
        if record.event_type == "llm.rag.generated":
            self.models.add(record.payload.get("model", "unknown"))
        return True

    @property
    def summary(self) -> RAGSessionPayload:
        """The fold over the stages, with times and end reason from the last summary, where there is one."""
        return self.fold.summary(self.session_id)

    @property
    def ended(self) -> bool:
        """True where a summary says that the session has ended."""
        return self.fold.ended

    @property
    def started_at(self) -> str:
        """When it began: as its summary says, else the time of its first event."""
        return self.fold.told.get("started_at") or self.fold.first[1]

    def dump(self) -> bytes:
        """Return the state, for this process alone."""
        fold = vars(self.fold) | {"totals": vars(self.fold.totals)}
        return marshal.dumps((self.event_ids, self.models, self.tags, fold))

    @classmethod
    def load(cls, org_id: str, session_id: str, state: bytes) -> FoldedSession:
        """Return a session that goes on from what `dump` gave."""
        session = cls(org_id, session_id)
        parts = marshal.loads(state)  # noqa: S302  written by this process, into its own file
        session.event_ids, session.models, session.tags, fold = parts
        vars(session.fold.totals).update(fold.pop("totals"))
        vars(session.fold).update(fold)
        return session


class SessionFolder:
    """Folds records of any number of sessions, in any order.

    Attributes:
        repeated: Events that were read more than once.
        unplaced: Events of no session.

    Args:
        hot: Sessions held in memory at once.
    """

    def __init__(self, hot: int = _HOT) -> None:
        self.repeated = self.unplaced = 0
        self._hot: dict[_Key, FoldedSession] = {}
        self._limit = hot
        self._spilled: sqlite3.Connection | None = None

    def __len__(self) -> int:
        waiting = self._spilled.execute("SELECT count(*) FROM session").fetchone()[0] if self._spilled else 0
        return len(self._hot) + waiting

    def add_all(self, records: Iterable[Record]) -> None:
        """Add records."""
        hot = self._hot
        for record in records:
            if not record.session_id:
                self.unplaced += 1
                continue
            key = (record.org_id, record.session_id)
            session = hot.get(key) or self._warm(key)
            if not session.add(record):
                self.repeated += 1

    def sessions(self, where: SessionFilter | None = None) -> Iterator[FoldedSession]:
        """Give the sessions that pass a filter, the one that began last first."""
        hot = sorted(self._hot.values(), key=_NEWEST, reverse=True)
        for session in merge(hot, self._waiting(), key=_NEWEST, reverse=True):
            if where is None or where.accepts(session):
                yield session

    def _waiting(self) -> Iterator[FoldedSession]:
        if self._spilled is not None:
            newest = "SELECT org, id, state FROM session ORDER BY started DESC, id DESC, org DESC"
            with closing(self._spilled.execute(newest)) as rows:
                for row in rows:
                    yield FoldedSession.load(*row)

    def _warm(self, key: _Key) -> FoldedSession:
        """Return a session that is not in memory, as it was left or new."""
        if len(self._hot) >= self._limit:
            self._spill(self._limit // 2)
        session = self._recalled(key) or FoldedSession(*key)
        self._hot[key] = session
        return session

    def _recalled(self, key: _Key) -> FoldedSession | None:
        if self._spilled is None:
            return None
        found = self._spilled.execute("SELECT state FROM session WHERE org = ? AND id = ?", key).fetchone()
        if found is None:
            return None
        self._spilled.execute("DELETE FROM session WHERE org = ? AND id = ?", key)
        return FoldedSession.load(*key, found[0])

    def _spill(self, count: int) -> None:
        """Write the sessions that came into memory first to the scratch database."""
        if self._spilled is None:
            # Without a name: a file of its own, which is gone when the process is.
            self._spilled = sqlite3.connect("", isolation_level=None)
            self._spilled.execute("PRAGMA journal_mode = OFF")
            self._spilled.execute(
                "CREATE TABLE session"
                " (org TEXT, id TEXT, started TEXT, state BLOB, PRIMARY KEY (org, id)) WITHOUT ROWID"
            )
        leaving = [self._hot.pop(key) for key in [*islice(self._hot, count)]]
        rows = ((one.org_id, one.session_id, one.started_at, one.dump()) for one in leaving)
        self._spilled.execute("BEGIN")
        self._spilled.executemany("INSERT INTO session VALUES (?, ?, ?, ?)", rows)
        self._spilled.execute("COMMIT")
