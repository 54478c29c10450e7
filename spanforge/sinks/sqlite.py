"""The sqlite sink: a local database of events, one row for each, that many processes write and anybody may query."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from spanforge import _clock
from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks._files import absolute, code_of
from spanforge.sinks._quiet import Quiet
from spanforge.sinks._schema import NewerSchemaError, NotAStoreError, migrate
from spanforge.sinks.base import BaseSink

__all__ = ["SqliteSink"]

_BUSY_S: Final = 2.0
_POLL_S: Final = 0.002
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_HOPELESS: Final = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
_UNENCODABLE: Final = (TypeError, ValueError, RecursionError)
_INSERT: Final = (
    "INSERT INTO events (event_id, event_type, timestamp, session_id, line) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (event_id) DO NOTHING"
)
_NEWER: Final = "the database was written by a newer spanforge: upgrade spanforge, or give the sink another file"
_FOREIGN: Final = "the database holds other tables than spanforge's: give the sink a file of its own"

Row = tuple[str, str, str, str, str]


class SqliteSink(BaseSink):
    """Stores events in the table `events`, and shows them by session in the view `sessions`.

    An event that is already there is left as it is, so a retry makes no second row. The file is the owner's alone
    (mode 0600), in WAL mode, and opened with the first write, in the thread that writes. A batch is one
    transaction: a crash of the process keeps all of it or none.

    Args:
        path: The database; its folder is made where it is missing. A relative path is fixed when the sink is made.
        name: What the ledger calls it; `sqlite:` and the file's name by default.

    Raises:
        ConfigError: `path` is no path.
    """

    def __init__(self, path: str | os.PathLike[str], *, name: str | None = None) -> None:
        self._path = absolute(path)
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
        problem, retryable = "", True
        try:
            self._store_patiently(rows)
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

    def _store_patiently(self, rows: Sequence[Row]) -> None:
        """Store, waiting for other writers; not with SQLite's own time-out, which would wait inside of SQLite."""
        deadline = _clock.monotonic() + _BUSY_S
        while True:
            try:
                with self._quiet:
                    self._store(rows)
            except sqlite3.OperationalError as error:
                if not _code(error).startswith(_BUSY) or _clock.monotonic() >= deadline:
                    raise
            else:
                return
            time.sleep(_POLL_S)

    def _store(self, rows: Sequence[Row]) -> None:
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(_INSERT, rows)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

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
    connection.execute("PRAGMA journal_mode = WAL")
    # In WAL mode a crash of the process loses nothing by this, and one of the machine at most the last batches.
    connection.execute("PRAGMA synchronous = NORMAL")


def _code(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _rows(events: Iterable[Event]) -> tuple[list[Row], str]:
    """Return the rows up to the first event that cannot be encoded, and what is wrong with that one."""
    rows: list[Row] = []
    try:
        for event in events:
            line = event.encode().decode("ascii")
            rows.append((event.event_id, event.event_type, event.timestamp, _text(event.session_id), line))
    except _UNENCODABLE as error:
        return rows, type(error).__name__
    return rows, ""


def _text(session_id: str) -> str:
    """SQLite takes no lone surrogates; the line has the id as it was."""
    return session_id.encode("utf-8", "backslashreplace").decode("utf-8")


def _keep_forever(connection: sqlite3.Connection) -> None:
    """Take a reference that outlasts the interpreter; without ctypes, one that lasts as long as it does."""
    _inherited.append(connection)
    with suppress(ImportError):
        import ctypes  # noqa: PLC0415  needed in forked children only, and absent from some builds of Python

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


_inherited: list[sqlite3.Connection] = []
