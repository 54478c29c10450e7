"""What is known beside the index: data sources, documents and jobs, in one small SQLite file.

A document's row is written after its passages stand in the index, so that whatever a killed process left
behind is seen as unfinished by the next one and done again under the same ids.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spanforge.reference.failures import IndexFull, IndexUnavailable, RagFailure, Translated
from spanforge.reference.models import DataSource, IngestionOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from pathlib import Path

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sources (
  org_id TEXT, data_source_id TEXT, body TEXT NOT NULL, PRIMARY KEY (org_id, data_source_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
  org_id TEXT, data_source_id TEXT, document_id TEXT, fingerprint TEXT NOT NULL, chunks INTEGER NOT NULL,
  PRIMARY KEY (org_id, data_source_id, document_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (
  job_id TEXT PRIMARY KEY, org_id TEXT NOT NULL, user_id TEXT NOT NULL, request TEXT, body TEXT NOT NULL,
  cancelled INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document that stands in the index as a whole."""

    document_id: str
    fingerprint: str
    chunks: int


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it was last written.

    Attributes:
        request: What to do, for jobs that can be taken up again by another process; else absent.
    """

    output: IngestionOutput
    org_id: str
    user_id: str
    request: dict[str, Any] | None
    cancelled: bool = False


class Catalog:
    """The file, or a private database in memory where no path is given. Safe for threads and processes."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.RLock()
        with _store_errors():
            self._db = sqlite3.connect(
                path if path is not None else ":memory:", check_same_thread=False, isolation_level=None, timeout=30.0
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
            if version <= SCHEMA_VERSION:
                self._db.executescript(_SCHEMA + f"PRAGMA user_version={SCHEMA_VERSION};")
        if version > SCHEMA_VERSION:
            raise IndexUnavailable("The index was written by a newer version of spanforge; upgrade to read it.")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    # --- settings ---

    def setting(self, name: str) -> str | None:
        """Return a stored setting, None where there is none."""
        rows = self._read("SELECT value FROM settings WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def remember(self, name: str, value: str) -> str:
        """Store a setting at its first use and return the stored one ever after."""
        with self._write() as db:
            db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, value))
            return str(db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()[0])

    # --- data sources ---

    def sources(self, org_id: str) -> list[DataSource]:
        """Return the organisation's data sources."""
        rows = self._read("SELECT body FROM sources WHERE org_id = ? ORDER BY data_source_id", (org_id,))
        return [DataSource.model_validate_json(row[0]) for row in rows]

    def source(self, org_id: str, data_source_id: str) -> DataSource | None:
        """Return one data source, None where there is none of this id."""
        rows = self._read("SELECT body FROM sources WHERE org_id = ? AND data_source_id = ?", (org_id, data_source_id))
        return DataSource.model_validate_json(rows[0][0]) if rows else None

    def put_source(self, source: DataSource, may_replace: Callable[[DataSource], bool] = lambda _: True) -> bool:
        """Add a data source, or replace the one of its id.

        Args:
            source: What is added.
            may_replace: Asked about the one that is there, with nobody writing in between.

        Returns:
            Whether it was done.
        """
        key = (source.org_id, source.data_source_id)
        with self._write() as db:
            known = db.execute("SELECT body FROM sources WHERE org_id = ? AND data_source_id = ?", key).fetchone()
            if known is not None and not may_replace(DataSource.model_validate_json(known[0])):
                return False
            db.execute("INSERT OR REPLACE INTO sources VALUES (?, ?, ?)", (*key, source.model_dump_json()))
            return True

    def ensure_source(self, source: DataSource) -> DataSource:
        """Add a data source where there is none of its id, and return the one that is there."""
        known: list[DataSource] = []

        def keep(one: DataSource) -> bool:
            known.append(one)
            return False

        return source if self.put_source(source, keep) else known[0]

    def drop_source(self, org_id: str, data_source_id: str) -> None:
        """Forget a data source, its documents and its jobs; a job that still runs finds itself cancelled."""
        with self._write() as db:
            for table in ("sources", "documents"):
                db.execute(
                    f"DELETE FROM {table} WHERE org_id = ? AND data_source_id = ?",  # noqa: S608 - two constant names
                    (org_id, data_source_id),
                )
            db.execute(
                "DELETE FROM jobs WHERE org_id = ? AND json_extract(body, '$.data_source_id') = ?",
                (org_id, data_source_id),
            )

    # --- documents ---

    def document(self, org_id: str, data_source_id: str, document_id: str) -> DocumentRecord | None:
        """Return what is known of a document, None where it does not stand in the index as a whole."""
        rows = self._read(
            "SELECT document_id, fingerprint, chunks FROM documents "
            "WHERE org_id = ? AND data_source_id = ? AND document_id = ?",
            (org_id, data_source_id, document_id),
        )
        return DocumentRecord(*rows[0]) if rows else None

    def documents(self, org_id: str, data_source_id: str) -> list[DocumentRecord]:
        """Return the documents of a data source."""
        rows = self._read(
            "SELECT document_id, fingerprint, chunks FROM documents WHERE org_id = ? AND data_source_id = ? "
            "ORDER BY document_id",
            (org_id, data_source_id),
        )
        return [DocumentRecord(*row) for row in rows]

    def put_documents(self, org_id: str, data_source_id: str, records: Iterable[DocumentRecord]) -> None:
        """Record documents as standing in the index."""
        with self._write() as db:
            db.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)",
                [(org_id, data_source_id, r.document_id, r.fingerprint, r.chunks) for r in records],
            )

    def drop_documents(self, org_id: str, data_source_id: str, document_ids: Iterable[str]) -> None:
        """Forget documents, so that a later ingestion does them again."""
        with self._write() as db:
            db.executemany(
                "DELETE FROM documents WHERE org_id = ? AND data_source_id = ? AND document_id = ?",
                [(org_id, data_source_id, document_id) for document_id in document_ids],
            )

    # --- jobs ---

    def put_job(self, record: JobRecord) -> None:
        """Add a job."""
        request = None if record.request is None else json.dumps(record.request)
        with self._write() as db:
            db.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?)",
                (
                    record.output.job_id,
                    record.org_id,
                    record.user_id,
                    request,
                    record.output.model_dump_json(),
                    int(record.cancelled),
                ),
            )

    def update_job(self, output: IngestionOutput) -> None:
        """Rewrite how a job stands; one that was forgotten with its data source stays so."""
        with self._write() as db:
            db.execute("UPDATE jobs SET body = ? WHERE job_id = ?", (output.model_dump_json(), output.job_id))

    def job(self, job_id: str) -> JobRecord | None:
        """Return a job, None where there is none of this id."""
        rows = self._read(f"{_SELECT_JOB} WHERE job_id = ?", (job_id,))
        return _job(rows[0]) if rows else None

    def jobs(self, org_id: str) -> list[JobRecord]:
        """Return the organisation's jobs, oldest first."""
        return [_job(row) for row in self._read(f"{_SELECT_JOB} WHERE org_id = ? ORDER BY job_id", (org_id,))]

    def cancel_job(self, job_id: str) -> None:
        """Ask the process that works on a job to stop."""
        with self._write() as db:
            db.execute("UPDATE jobs SET cancelled = 1 WHERE job_id = ?", (job_id,))

    def is_cancelled(self, job_id: str) -> bool:
        """Tell whether a job was asked to stop, or forgotten with its data source."""
        rows = self._read("SELECT cancelled FROM jobs WHERE job_id = ?", (job_id,))
        return not rows or bool(rows[0][0])

    def _read(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._lock, _store_errors():
            return self._db.execute(statement, values).fetchall()

    @contextmanager
    def _write(self) -> Generator[sqlite3.Connection]:
        with self._lock, _store_errors():
            self._db.execute("BEGIN IMMEDIATE")
            done = False
            try:
                yield self._db
                self._db.execute("COMMIT")
                done = True
            finally:
                if not done and self._db.in_transaction:
                    self._db.execute("ROLLBACK")


_SELECT_JOB = "SELECT body, org_id, user_id, request, cancelled FROM jobs"


def _job(row: tuple[Any, ...]) -> JobRecord:
    body, org_id, user_id, request, cancelled = row
    return JobRecord(
        output=IngestionOutput.model_validate_json(body),
        org_id=org_id,
        user_id=user_id,
        request=None if request is None else json.loads(request),
        cancelled=bool(cancelled),
    )


def _store_errors() -> Translated:
    return Translated((sqlite3.Error,), _store_failure)


def _store_failure(error: Exception) -> RagFailure:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return IndexFull()
    return IndexUnavailable("The catalogue beside the index cannot be read or written; check its folder.")
