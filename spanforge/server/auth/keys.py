"""API keys: made once, shown once, kept as digests.

A key is `sf_`, its public id, and 256 random bits. A key that random is not guessed, so a plain SHA-256 is as good as a
slow one, and a request costs microseconds. Each request reads the file: a revoked key is dead at once, whichever
process revoked it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import sqlite3
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from spanforge import _clock
from spanforge.reference import User

if TYPE_CHECKING:
    from pathlib import Path

KEYS_FILE: Final = "keys.sqlite"
PREFIX: Final = "sf_"
_FORM: Final = re.compile(r"sf_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS keys (
  key_id TEXT PRIMARY KEY, digest BLOB NOT NULL, user TEXT NOT NULL, created REAL NOT NULL, revoked REAL
) WITHOUT ROWID
"""
_NOBODY: Final = bytes(32)
"""Compared with where there is no such key, so that an unknown id costs what a wrong secret costs."""


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as it is listed; what it is made of is not known any more."""

    key_id: str
    user: User
    created: datetime
    revoked: datetime | None


class KeyStore:
    """The keys of one server, in one file that only its owner can read. Safe for threads and processes."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Made by us before SQLite does, so that there is no moment in which others can read it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10.0)
        with self._lock:
            # Each request reads: it must not wait for one who writes.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute(_SCHEMA)

    def add(self, user: User) -> str:
        """Make a key for a user and return it; it cannot be shown again."""
        key_id = secrets.token_hex(8)
        key = f"{PREFIX}{key_id}_{secrets.token_urlsafe(32)}"
        row = (key_id, _digest(key), user.model_dump_json(), _clock.wall_ns() / 1e9)
        with self._lock:
            self._db.execute("INSERT INTO keys VALUES (?, ?, ?, ?, NULL)", row)
        return key

    def find(self, key: str) -> User | None:
        """Return whose key this is, None where it is none or was revoked."""
        match = _FORM.fullmatch(key)
        if match is None:
            return None
        with self._lock:
            row = self._db.execute(
                "SELECT digest, user FROM keys WHERE key_id = ? AND revoked IS NULL", (match[1],)
            ).fetchone()
        known, user = row or (_NOBODY, "")
        return User.model_validate_json(user) if hmac.compare_digest(known, _digest(key)) else None

    def revoke(self, key_id: str) -> bool:
        """Revoke a key by its public id; false where there is none, or it was revoked before."""
        with self._lock:
            now = _clock.wall_ns() / 1e9
            changed = self._db.execute(
                "UPDATE keys SET revoked = ? WHERE key_id = ? AND revoked IS NULL", (now, key_id)
            )
            return changed.rowcount > 0

    def all(self) -> list[KeyInfo]:
        """Return every key, oldest first."""
        with self._lock:
            rows = self._db.execute("SELECT key_id, user, created, revoked FROM keys ORDER BY created").fetchall()
        return [
            KeyInfo(
                key_id,
                User.model_validate_json(user),
                datetime.fromtimestamp(created, UTC),
                None if revoked is None else datetime.fromtimestamp(revoked, UTC),
            )
            for key_id, user, created, revoked in rows
        ]

    def any_valid(self) -> bool:
        """Tell whether there is a key that has not been revoked."""
        with self._lock:
            return self._db.execute("SELECT 1 FROM keys WHERE revoked IS NULL LIMIT 1").fetchone() is not None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("ascii", "replace")).digest()
