"""The tables of the index, and connections to it.

It is a scratch file: made anew by each viewer, readable by its owner alone, and deleted with the viewer. It holds
ids, digests, names and figures, as the store does, and where in the store each event stands.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from spanforge.server.viewer.index.figures import COLUMNS

__all__ = ["connect", "create"]

# An organisation is a part of every key: two of them may use the same session id and must not meet.
# Figures that pages never filter by live apart, so that a scan over sessions reads little.
_TABLES: Final = f"""
CREATE TABLE session (
  id INTEGER PRIMARY KEY, org TEXT NOT NULL, session_id TEXT NOT NULL, key TEXT NOT NULL UNIQUE,
  {", ".join(COLUMNS)}
);
CREATE INDEX session_by_start ON session (started, session_id, org);
CREATE INDEX session_by_org ON session (org, started, session_id);
CREATE INDEX session_by_id ON session (session_id, org);
CREATE TABLE fold (session INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE event (
  session INTEGER NOT NULL, event_id TEXT NOT NULL, source INTEGER NOT NULL, place INTEGER NOT NULL, line BLOB,
  PRIMARY KEY (session, event_id)
) WITHOUT ROWID;
CREATE TABLE name (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (kind, text));
CREATE TABLE mention (
  name INTEGER NOT NULL, session INTEGER NOT NULL, times INTEGER NOT NULL, PRIMARY KEY (name, session)
) WITHOUT ROWID;
CREATE TABLE tally (
  org TEXT NOT NULL, what TEXT NOT NULL, times INTEGER NOT NULL, PRIMARY KEY (org, what)
) WITHOUT ROWID;
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open the index; each thread that asks opens its own connection."""
    connection = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def create(path: Path) -> sqlite3.Connection:
    """Make the tables, and return the connection that writes them."""
    connection = connect(path)
    # Pages read on while a batch is written.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(_TABLES)
    return connection
