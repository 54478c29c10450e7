"""Sessions out of a sqlite store by its own table, without reading the events of all the others."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spanforge._text import storable
from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.reader.decoding import events_in
from spanforge.reader.lines import SQLITE_MAGIC
from spanforge.reader.store import connect
from spanforge.sessions.stored import StoredTotals

__all__ = ["SESSIONS_SINCE", "ListedSession", "SessionStore", "has_sessions", "session_store"]

SESSIONS_SINCE: Final = 4
"""The version of a store's shape (`PRAGMA user_version`) that has the table, as it is read here."""

_APPLICATION_ID: Final = 0x53504647


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session as the table of a store has it.

    Attributes:
        org_id: The organisation it belongs to; ids of sessions count within it.
        session_id: The session.
        fold: What its events add up to.
    """

    org_id: str
    session_id: str
    fold: StoredTotals

    @property
    def ended(self) -> bool:
        """True where a summary says that the session has ended."""
        return self.fold.ended

    @property
    def summary(self) -> RAGSessionPayload:
        """The fold over its stages, or what its last summary tells where there are none."""
        return self.fold.summary(self.session_id)

    @property
    def started_at(self) -> str:
        """When it began: as its summary says, else the time of its first event."""
        return self.summary.started_at or self.fold.first[1]


class SessionStore:
    """The table `session` of a store.

    Args:
        connection: To a store whose table is whole.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def count(self, status: str | None = None) -> int:
        """Return how many sessions there are, of one status or of all."""
        where, values = _of_status(status)
        found: int = self._connection.execute(f"SELECT count(*) FROM session WHERE {where}", values).fetchone()[0]  # noqa: S608  our own text
        return found

    def latest(self, limit: int, status: str | None = None) -> list[ListedSession]:
        """Return the sessions that began last, latest last; all of them where `limit` is 0."""
        where, values = _of_status(status)
        rows = self._connection.execute(
            "SELECT org_id, session_id, state FROM session JOIN session_state ON session = id "  # noqa: S608  our own text
            f"WHERE {where} ORDER BY started_us DESC, session_id DESC, org_id DESC LIMIT ?",
            (*values, limit or -1),
        )
        listed = [
            ListedSession(org, session_id, StoredTotals.load(json.loads(state))) for org, session_id, state in rows
        ]
        return listed[::-1]

    def find(self, wanted: str) -> list[tuple[str, str]]:
        """Return organisation and id of the sessions with this id, else of those it fits otherwise.

        Args:
            wanted: An id; an organisation, a slash and an id; or how an id begins or ends.
        """
        text = storable(wanted)
        return (
            self._pairs("session_id = ?1", text)
            or self._pairs("org_id || '/' || session_id = ?1", text)
            or self._pairs("substr(session_id, 1, length(?1)) = ?1 OR substr(session_id, -length(?1)) = ?1", text)
        )

    def events(self, org_id: str, session_id: str, damaged: Counter[str]) -> list[Event]:
        """Return the events of a session in the order in which they were emitted; what is damaged is counted."""
        rows = self._connection.execute(
            "SELECT CAST(line AS BLOB) FROM events WHERE session_id = ? AND org_id = ? ORDER BY event_id",
            (session_id, org_id),
        )
        return [event for (line,) in rows for event in events_in(line, damaged)]

    def damaged(self) -> Counter[str]:
        """Return how many stored lines are in no session because they are damaged, by reason."""
        return Counter(dict(self._connection.execute("SELECT reason, times FROM damage")))

    def _pairs(self, where: str, text: str) -> list[tuple[str, str]]:
        query = f"SELECT org_id, session_id FROM session WHERE {where} ORDER BY session_id, org_id LIMIT 100"  # noqa: S608  our own text
        return self._connection.execute(query, (text,)).fetchall()


@contextmanager
def session_store(path: Path) -> Generator[SessionStore | None]:
    """Give the table of sessions of a store; None where there is no whole one, so that its events have to be read.

    There is none in other files, in stores of older and newer versions, and in one that has events which are not in
    the table yet.

    Raises:
        sqlite3.DatabaseError: The store is locked, damaged or something else.
    """
    if not has_sessions(path):
        yield None
        return
    with closing(connect(path)) as connection:
        # One look at the store for all that is asked, while others write.
        connection.isolation_level = None
        connection.execute("BEGIN")
        yield SessionStore(connection) if _is_whole(connection) else None


def has_sessions(path: Path) -> bool:
    """Tell whether a file is a store with a table of sessions, whole or not, as this version reads it."""
    try:
        with path.open("rb") as file:
            if file.read(len(SQLITE_MAGIC)) != SQLITE_MAGIC:
                return False
        with closing(connect(path)) as connection:
            return connection.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchone() == (
                _APPLICATION_ID,
                SESSIONS_SINCE,
            )
    except (OSError, sqlite3.DatabaseError):
        return False


def _is_whole(connection: sqlite3.Connection) -> bool:
    stored, folded = connection.execute("SELECT (SELECT max(seq) FROM events), (SELECT seq FROM folded)").fetchone()
    return folded >= (stored or 0)


def _of_status(status: str | None) -> tuple[str, tuple[str, ...]]:
    return ("1", ()) if status is None else ("status = ?", (status,))
