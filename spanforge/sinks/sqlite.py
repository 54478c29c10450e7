"""The sqlite sink: a local database of events, one row for each, that many processes write and anybody may query."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from spanforge import _clock
from spanforge._text import storable
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event, Identity
from spanforge.sinks._files import absolute, code_of
from spanforge.sinks._quiet import Quiet
from spanforge.sinks._schema import NewerSchemaError, NotAStoreError, migrate
from spanforge.sinks._session_table import fold_events, sound_event
from spanforge.sinks.base import BaseSink
from spanforge.sinks.retention import forget_index, forget_some

__all__ = ["SqliteSink"]

_BUSY_S: Final = 2.0
_POLL_S: Final = 0.002
_BETWEEN_S: Final = 600.0
"""Seconds between two looks for what is too old."""
_LONGEST_S: Final = 3.2e10
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_HOPELESS: Final = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
_UNENCODABLE: Final = (TypeError, ValueError, RecursionError)
_INSERT: Final = (
    "INSERT INTO events (org_id, session_id, event_id, event_type, timestamp, line) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (session_id, event_id, org_id) DO NOTHING"
)
# What was stored stays stored: an event that is none in the sense of its type only leaves its place to one that is.
_MAKE_WAY: Final = (
    "UPDATE events SET event_id = event_id || '~' || hex(randomblob(8)) "
    "WHERE org_id = ? AND session_id = ? AND event_id = ? "
    "AND CASE WHEN line = ? THEN 0 ELSE sound(CAST(? AS BLOB)) > sound(CAST(line AS BLOB)) END"
)
_NEWER: Final = "the database was written by a newer spanforge: upgrade spanforge, or give the sink another file"
_FOREIGN: Final = "the database holds other tables than spanforge's: give the sink a file of its own"

Row = tuple[str, str, str, str, str, str]


class SqliteSink(BaseSink):
    """Stores events in the table `events`, and what they add up to, by session, in the view `sessions`.

    An event that is already there is left as it is, so a retry makes no second row; one whose payload is not what its
    type says keeps no sound one out. The file is the owner's alone (mode 0600), in WAL mode, and opened with the first
    write, in the thread that writes. A batch is one transaction: a crash of the process keeps all of it or none.

    Args:
        path: The database; its folder is made where it is missing. A relative path is fixed when the sink is made.
        name: What the ledger calls it; `sqlite:` and the file's name by default.
        keep: Seconds after its last event that a session is deleted, a few at each write; None keeps all.

    Raises:
        ConfigError: `path` is no path, or `keep` is no time.
    """

    def __init__(self, path: str | os.PathLike[str], *, name: str | None = None, keep: float | None = None) -> None:
        if keep is not None and not 0 < keep < _LONGEST_S:
            raise ConfigError("keep: must be seconds, more than 0 and less than a thousand years")
        self._path = absolute(path)
        self._keep, self._forget_at = keep, 0.0
        self.name = name or f"sqlite:{self._path.name}"
        self._connection: sqlite3.Connection | None = None
        self._key = (0, 0)
        self._quiet = Quiet()

    def write(self, events: Sequence[Event], /) -> None:
        """Store the events in one transaction.

        Raises:
            SinkWriteError: The database is locked, full, damaged, of a newer version or of something else: nothing
                was stored. Or an event cannot be encoded: those before it were.
        """
        rows, unencodable = _rows(events)
        known = {row[:3]: event for row, event in zip(rows, events, strict=False)}
        if len(known) < len(rows):
            known = {}  # which of several that are one is stored, the database says
        problem, retryable = "", True
        try:
            self._store_patiently(rows, known)
        except sqlite3.Error as error:
            problem = _code(error)
            retryable = not problem.startswith(_HOPELESS)
        except OSError as error:
            problem = code_of(error)
        except NewerSchemaError:
            problem, retryable = _NEWER, False
        except NotAStoreError:
            problem, retryable = _FOREIGN, False
        if problem:
            raise SinkWriteError(problem, retryable=retryable)
        if self._keep is not None and _clock.monotonic() >= self._forget_at:
            self._forget(self._keep)
        if unencodable:
            raise SinkWriteError(unencodable, delivered=len(rows), retryable=False)

    def close(self) -> None:
        """Close the database; the last to do so folds the write-ahead log into it."""
        with self._quiet:
            self._close()

    def after_fork(self) -> None:
        """Open the database anew when the child writes.

        SQLite forbids even closing a connection that came through a fork: that would drop locks and delete the
        write-ahead log under the parent. So the child keeps it to its very end.
        """
        # A fork that went past Python's hooks may have copied the lock while another thread held it.
        self._quiet = Quiet()
        if self._connection is not None:
            _keep_forever(self._connection)
            self._connection = None

    def _store_patiently(self, rows: Sequence[Row], known: Mapping[Identity, Event]) -> None:
        """Store, waiting for other writers; not with SQLite's own time-out, which would wait inside of SQLite."""
        deadline = _clock.monotonic() + _BUSY_S
        while True:
            try:
                with self._quiet:
                    self._store(rows, known)
            except sqlite3.OperationalError as error:
                if not _code(error).startswith(_BUSY) or _clock.monotonic() >= deadline:
                    raise
            else:
                return
            time.sleep(_POLL_S)

    def _store(self, rows: Sequence[Row], known: Mapping[Identity, Event]) -> None:
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        try:
            fold_events(connection, known, _insert(connection, rows))
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _forget(self, keep: float) -> None:
        """Delete a little of what is too old, and look again in a while where nothing is."""
        done = True
        # The events are stored: whatever is in the way of this does not change that.
        with suppress(sqlite3.Error), self._quiet:
            done = not forget_some(self._opened(), _clock.wall_ns() - int(keep * 1e9))
            if not done:
                forget_index(self._path)
        if done:
            self._forget_at = _clock.monotonic() + _BETWEEN_S

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _opened(self) -> sqlite3.Connection:
        """Return a connection to the database that the path leads to now."""
        if self._connection is not None and self._key != self._key_now():
            self._close()
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Made before SQLite makes it, for the mode: its log files take the mode of the database.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection)
            except (sqlite3.Error, NewerSchemaError, NotAStoreError):
                connection.close()
                raise
            self._connection, self._key = connection, self._key_now()
        return self._connection

    def _key_now(self) -> tuple[int, int]:
        with suppress(OSError):
            info = self._path.stat()
            return info.st_dev, info.st_ino
        return 0, 0


def _prepare(connection: sqlite3.Connection) -> None:
    migrate(connection)
    connection.create_function("sound", 1, _is_sound)
    connection.execute("PRAGMA journal_mode = WAL")
    # In WAL mode a crash of the process loses nothing by this, and one of the machine at most the last batches.
    connection.execute("PRAGMA synchronous = NORMAL")


def _is_sound(line: bytes) -> bool:
    return sound_event(line) is not None


def _insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> int:
    """Store the rows that are not there yet; return how many they were."""
    added = connection.executemany(_INSERT, rows).rowcount if rows else 0
    if added < len(rows):
        kept_out = (row for row in rows if connection.execute(_MAKE_WAY, (*row[:3], row[-1], row[-1])).rowcount)
        added += sum(connection.execute(_INSERT, row).rowcount for row in kept_out)
    return added


def _code(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _rows(events: Iterable[Event]) -> tuple[list[Row], str]:
    """Return the rows up to the first event that cannot be encoded, and what is wrong with that one."""
    rows: list[Row] = []
    try:
        for event in events:
            line = event.encode().decode("ascii")
            org_id, session_id, event_id = map(storable, event.identity)
            rows.append((org_id, session_id, event_id, storable(event.event_type), storable(event.timestamp), line))
    except _UNENCODABLE as error:
        return rows, type(error).__name__
    return rows, ""


def _keep_forever(connection: sqlite3.Connection) -> None:
    """Take a reference that outlasts the interpreter; without ctypes, one that lasts as long as it does."""
    _inherited.append(connection)
    with suppress(ImportError):
        import ctypes  # noqa: PLC0415  needed in forked children only, and absent from some builds of Python

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


_inherited: list[sqlite3.Connection] = []
