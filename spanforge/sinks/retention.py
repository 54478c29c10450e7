"""What a sqlite store forgets, while others go on writing to it: what is too old, and whatever else is asked for."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, TypeVar

from spanforge import _clock
from spanforge.sinks._schema import NewerSchemaError, NotAStoreError, migrate
from spanforge.sinks._session_table import fold_events, refold, unfold

__all__ = [
    "INDEX_FOLDER",
    "NewerSchemaError",
    "NotAStoreError",
    "forget",
    "forget_index",
    "forget_some",
    "is_unfinished",
    "remove",
]

INDEX_FOLDER: Final = ".spanforge/index"
"""Beside what is read often: what was made of it, for the next reader to begin with."""

_Count = TypeVar("_Count", int, Counter[str])
_MOST: Final = 200
"""Sessions or events that one transaction forgets: no writer waits long for it."""
_BUSY_S: Final = 5.0
_PAUSE_S: Final = 0.01
_OLD: Final = "SELECT id, session_id, org_id FROM session WHERE started_us < ? AND last_event_at < ? LIMIT ?"
_OWN: Final = "session_id = ? AND org_id = ?"
_NEXT: Final = "SELECT seq, session_id, org_id, CAST(line AS BLOB) FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
_PATIENTLY: Final[Any] = {"timeout": _BUSY_S, "isolation_level": None}


def forget(path: str | os.PathLike[str], older_than_s: float) -> int:
    """Delete the sessions of a store whose last event is older, and old events of no session; return how many events.

    Whoever writes to the store goes on meanwhile. Deleted rows are overwritten.

    Args:
        path: A database of the sqlite sink.
        older_than_s: Seconds.

    Raises:
        sqlite3.Error: It is locked for long, damaged, or no such database.
    """
    moment_ns = _clock.wall_ns() - int(older_than_s * 1e9)
    gone = 0
    with closing(sqlite3.connect(path, **_PATIENTLY)) as connection:
        while some := forget_some(connection, moment_ns):
            gone += some
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if gone:
        forget_index(path)
    return gone


def forget_index(path: str | os.PathLike[str]) -> None:
    """Remove what was made of a file or a store that has lost events; the next reader makes it anew."""
    for folder in {Path(path).parent, Path(path).resolve().parent}:
        rmtree(folder / INDEX_FOLDER, ignore_errors=True)


def forget_some(connection: sqlite3.Connection, moment_ns: int) -> int:
    """Delete what fits into one short transaction, and return how many events that were: 0 when all is done.

    Args:
        connection: To a database of the sqlite sink, in autocommit mode.
        moment_ns: What was last heard of before it is deleted, in nanoseconds since the epoch.
    """
    connection.execute("PRAGMA secure_delete = ON")
    return _in_one_step(connection, lambda: _forgotten(connection, moment_ns))


def _unfolded(connection: sqlite3.Connection) -> bool:
    [folded], [newest] = connection.execute("SELECT seq FROM folded UNION ALL SELECT max(seq) FROM events").fetchall()
    return folded < (newest or 0)


def _forgotten(connection: sqlite3.Connection, moment_ns: int) -> int:
    moment = _clock.timestamp(moment_ns)
    if _unfolded(connection):
        # Of what no writer has folded yet, nobody knows to which session it belongs.
        return 0
    gone = 0
    for number, session_id, org_id in connection.execute(_OLD, (moment_ns // 1000, moment, _MOST)).fetchall():
        gone += _forget_session(connection, number, (session_id, org_id))
    stray = "SELECT seq FROM events WHERE session_id = '' AND timestamp < ? LIMIT ?"
    loose = connection.execute(f"DELETE FROM events WHERE seq IN ({stray})", (moment, _MOST)).rowcount  # noqa: S608
    connection.execute("UPDATE folded SET without_session = max(0, without_session - ?)", (loose,))
    return gone + loose


def _forget_session(connection: sqlite3.Connection, number: int, session: tuple[str, str]) -> int:
    """Delete a session with what it is found and counted by; its row goes with its last event."""
    unfold(connection, number, session)
    return connection.execute(f"DELETE FROM events WHERE {_OWN}", session).rowcount  # noqa: S608  our own names


def is_unfinished(path: str | os.PathLike[str]) -> bool:
    """Tell whether a store has lost events and was not written anew since."""
    return _owing(path).exists()


def _owing(path: str | os.PathLike[str]) -> Path:
    whole = Path(path).resolve()
    return whole.with_name(f".{whole.name}.pruning")


def remove(path: str | os.PathLike[str], reason: Callable[[bytes], str], gone: Counter[str]) -> None:
    """Delete events of a store, and what they left in free pages and in the write-ahead log.

    Whoever writes to the store goes on meanwhile, but for the moment at the end when it is written anew. Sessions that
    lose some of their events are what the others add up to.

    Args:
        path: A database of the sqlite sink.
        reason: Tells by its line why an event goes; empty where it stays.
        gone: Counts what went, by reason.

    Raises:
        NotAStoreError: It is a database of something else.
        NewerSchemaError: A newer version of spanforge wrote it.
        sqlite3.Error: It is locked for long, damaged, or the disk is full. What was deleted by then stays deleted, and
            nothing else is lost; the next call writes the store anew.
    """
    owing = _owing(path)
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=rw", uri=True, **_PATIENTLY)) as connection:
        migrate(connection)
        connection.execute("PRAGMA secure_delete = ON")
        some = iter(sorted(_touched(connection, reason)))
        owing.touch()
        while few := list(islice(some, _MOST)):
            gone.update(_in_one_step(connection, partial(_cut_all, connection, few, reason)))
        _rewrite(connection)
    owing.unlink()


def _touched(connection: sqlite3.Connection, reason: Callable[[bytes], str]) -> set[tuple[str, str]]:
    """Return id and organisation of the sessions that lose events; looks at a few at a time, and so at no old state."""
    found: set[tuple[str, str]] = set()
    behind = 0
    while rows := connection.execute(_NEXT, (behind, _MOST)).fetchall():
        behind = rows[-1][0]
        found.update((session, org) for _, session, org, line in rows if reason(line))
    return found


def _cut_all(
    connection: sqlite3.Connection, sessions: Sequence[tuple[str, str]], reason: Callable[[bytes], str]
) -> Counter[str]:
    while _unfolded(connection):
        fold_events(connection, {}, 0)
    return sum((_cut(connection, one, reason) for one in sessions), Counter[str]())


def _cut(connection: sqlite3.Connection, session: tuple[str, str], reason: Callable[[bytes], str]) -> Counter[str]:
    """Delete those events of a session that are to go, and fold the others anew."""
    lines = connection.execute(f"SELECT seq, CAST(line AS BLOB) FROM events WHERE {_OWN}", session).fetchall()  # noqa: S608
    doomed = {seq: why for seq, line in lines if (why := reason(line))}
    if session[0]:
        _unfold(connection, session)
    else:
        connection.execute("UPDATE folded SET without_session = max(0, without_session - ?)", (len(doomed),))
    connection.executemany("DELETE FROM events WHERE seq = ?", [(seq,) for seq in doomed])
    if session[0]:
        refold(connection, session)
    return Counter(doomed.values())


def _unfold(connection: sqlite3.Connection, session: tuple[str, str]) -> None:
    """Delete what a session is found and counted by, and its row."""
    [number] = connection.execute(f"SELECT id FROM session WHERE {_OWN}", session).fetchone() or [0]  # noqa: S608
    unfold(connection, number, session)
    connection.execute("DELETE FROM session_state WHERE session = ?", (number,))
    connection.execute("DELETE FROM session WHERE id = ?", (number,))


def _in_one_step(connection: sqlite3.Connection, change: Callable[[], _Count]) -> _Count:
    connection.execute("BEGIN IMMEDIATE")
    try:
        count = change()
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return count


def _rewrite(connection: sqlite3.Connection) -> None:
    """Write the store anew: pages keep copies of rows that were moved within them, which no deletion finds."""
    connection.execute("VACUUM")
    deadline = _clock.monotonic() + _BUSY_S
    while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        # While another connection does the same, SQLite does not wait.
        if _clock.monotonic() >= deadline:
            raise sqlite3.OperationalError("what was deleted is in the write-ahead log still, in use; run this again")
        time.sleep(_PAUSE_S)
