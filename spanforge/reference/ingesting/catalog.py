"""What is known beside the index: data sources, documents and jobs, in one small SQLite file.

Deleted rows are overwritten, and there is no log file that would keep them: what is deleted is gone from the disk.

A document is marked as unfinished while its passages change, so that whatever a killed process left behind is seen as
such by the next one: done again under the same ids, or forgotten.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulid import ULID

from spanforge.reference.failures import IndexFull, IndexUnavailable, RagFailure, Translated, undoing
from spanforge.reference.home_files import own_file
from spanforge.reference.models import DataSource, IngestionOutput, JobStatus

OPEN = frozenset({JobStatus.QUEUED, JobStatus.PROCESSING})
"""How a job stands that has not ended."""
SCHEMA_VERSION = 3
UNFINISHED = "Its ingestion or its removal was broken off; ingest or remove it again."
"""What is said of a document whose passages are being changed: for whoever finds it so after a process was killed."""
KEPT_JOBS = 1_000
"""Ended jobs that are remembered; the oldest are forgotten beyond it."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sources (
  org_id TEXT, data_source_id TEXT, body TEXT NOT NULL, PRIMARY KEY (org_id, data_source_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
  org_id TEXT, data_source_id TEXT, document_id TEXT, fingerprint TEXT NOT NULL, chunks INTEGER NOT NULL,
  warning TEXT NOT NULL DEFAULT '', PRIMARY KEY (org_id, data_source_id, document_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (
  job_id TEXT PRIMARY KEY, org_id TEXT NOT NULL, user_id TEXT NOT NULL, request TEXT, body TEXT NOT NULL,
  cancelled INTEGER NOT NULL DEFAULT 0, open INTEGER NOT NULL DEFAULT 1, attempts INTEGER NOT NULL DEFAULT 0)
  WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS open_jobs ON jobs (open);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID
"""
_FROM_1 = "ALTER TABLE documents ADD COLUMN warning TEXT NOT NULL DEFAULT '';"
_FROM_2 = """
ALTER TABLE jobs ADD COLUMN open INTEGER NOT NULL DEFAULT 1;
ALTER TABLE jobs ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
UPDATE jobs SET open = json_extract(body, '$.status') IN ('queued', 'processing');
"""
_PRAGMAS = ("secure_delete=ON", "journal_mode=DELETE", "synchronous=FULL")


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document that stands in the index, as a whole unless it is unfinished.

    Attributes:
        fingerprint: What it was made of, empty where it is unfinished.
        warning: What of it was not read, empty where it was read whole.
    """

    document_id: str
    fingerprint: str
    chunks: int
    warning: str = ""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it was last written.

    Attributes:
        request: What to do, for jobs that can be taken up again by another process; else absent.
        attempts: How often it was begun.
    """

    output: IngestionOutput
    org_id: str
    user_id: str
    request: dict[str, Any] | None
    cancelled: bool = False
    attempts: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it waits or is worked on."""
        return self.output.status in OPEN


class Catalog:
    """The file, or a private database in memory where no path is given. Safe for threads and processes."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.RLock()
        with _store_errors():
            if path is not None:
                own_file(path)
            self._db = sqlite3.connect(
                path if path is not None else ":memory:", check_same_thread=False, isolation_level=None, timeout=30.0
            )
            for pragma in _PRAGMAS:
                self._db.execute(f"PRAGMA {pragma}")
            version = self._upgraded()
        if version > SCHEMA_VERSION:
            raise IndexUnavailable("The index was written by a newer version of spanforge; upgrade to read it.")

    def _upgraded(self) -> int:
        """Bring an older file up to date, and return of what version it was."""
        # Another process that opens the file meanwhile waits, and finds it done.
        with self._write() as db:
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            if version < SCHEMA_VERSION:
                changes = {0: "", 1: _FROM_1 + _FROM_2, 2: _FROM_2}[version]
                # One by one: a script would end the transaction.
                for statement in f"{changes}{_SCHEMA}".split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        if 0 < version < SCHEMA_VERSION:
            # What was deleted before deleted rows were overwritten.
            self._db.execute("VACUUM")
        return version

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

    def organisations(self) -> list[str]:
        """Return the organisations that have a data source or a job."""
        return [row[0] for row in self._read("SELECT org_id FROM sources UNION SELECT org_id FROM jobs")]

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

    def drop_source(self, org_id: str, data_source_id: str) -> list[str]:
        """Forget a data source, its documents and its jobs; a job that still runs finds itself cancelled.

        Returns:
            Ids of the jobs that were forgotten.
        """
        with self._write() as db:
            for table in ("sources", "documents"):
                db.execute(
                    f"DELETE FROM {table} WHERE org_id = ? AND data_source_id = ?",  # noqa: S608 - two constant names
                    (org_id, data_source_id),
                )
            jobs = db.execute(
                "DELETE FROM jobs WHERE org_id = ? AND json_extract(body, '$.data_source_id') = ? RETURNING job_id",
                (org_id, data_source_id),
            )
            return [job_id for (job_id,) in jobs.fetchall()]

    # --- documents ---

    def document(self, org_id: str, data_source_id: str, document_id: str) -> DocumentRecord | None:
        """Return what is known of a document, None where it does not stand in the index as a whole."""
        rows = self._read(
            f"{_SELECT_DOCUMENT} AND document_id = ?",
            (org_id, data_source_id, document_id),
        )
        return DocumentRecord(*rows[0]) if rows else None

    def documents(self, org_id: str, data_source_id: str) -> list[DocumentRecord]:
        """Return the documents of a data source."""
        rows = self._read(f"{_SELECT_DOCUMENT} ORDER BY document_id", (org_id, data_source_id))
        return [DocumentRecord(*row) for row in rows]

    def put_documents(self, org_id: str, data_source_id: str, records: Iterable[DocumentRecord]) -> None:
        """Record documents as standing in the index."""
        with self._write() as db:
            db.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?)",
                [(org_id, data_source_id, r.document_id, r.fingerprint, r.chunks, r.warning) for r in records],
            )

    def mark_unfinished(self, org_id: str, data_source_id: str, document_ids: Iterable[str]) -> None:
        """Record that the passages of documents change, so that none of them is lost sight of."""
        records = [DocumentRecord(document_id, "", 0, UNFINISHED) for document_id in document_ids]
        self.put_documents(org_id, data_source_id, records)

    def drop_documents(self, org_id: str, data_source_id: str, document_ids: Iterable[str]) -> None:
        """Forget documents of which no passage is left."""
        with self._write() as db:
            db.executemany(
                "DELETE FROM documents WHERE org_id = ? AND data_source_id = ? AND document_id = ?",
                [(org_id, data_source_id, document_id) for document_id in document_ids],
            )

    # --- jobs ---

    def put_job(self, record: JobRecord) -> None:
        """Add a job, and forget the oldest ended ones beyond what is kept."""
        job = record.output
        request = None if record.request is None else json.dumps(record.request)
        row = (job.job_id, record.org_id, record.user_id, request, job.model_dump_json(), int(record.cancelled))
        with self._write() as db:
            db.execute(
                "INSERT INTO jobs (job_id, org_id, user_id, request, body, cancelled, open, attempts) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, int(record.is_open), record.attempts),
            )
            db.execute(
                "DELETE FROM jobs WHERE open = 0 AND job_id NOT IN "
                "(SELECT job_id FROM jobs WHERE open = 0 ORDER BY job_id DESC LIMIT ?)",
                (KEPT_JOBS,),
            )

    def update_job(self, output: IngestionOutput) -> None:
        """Rewrite how a job stands; one that was forgotten with its data source stays so."""
        values = (output.model_dump_json(), int(output.status in OPEN), output.job_id)
        with self._write() as db:
            db.execute("UPDATE jobs SET body = ?, open = ? WHERE job_id = ?", values)

    def forget_jobs(self, before: ULID) -> int:
        """Forget the jobs that had ended and were made before a moment; return how many."""
        with self._write() as db:
            return db.execute("DELETE FROM jobs WHERE open = 0 AND job_id < ?", (str(before),)).rowcount

    def count_attempt(self, job_id: str, by: int = 1) -> None:
        """Count that a job was begun; less than none takes back what was broken off for another's sake."""
        with self._write() as db:
            db.execute("UPDATE jobs SET attempts = attempts + ? WHERE job_id = ?", (by, job_id))

    def job(self, job_id: str) -> JobRecord | None:
        """Return a job, None where there is none of this id."""
        rows = self._read(f"{_SELECT_JOB} WHERE job_id = ?", (job_id,))
        return _job(rows[0]) if rows else None

    def open_jobs(self) -> list[JobRecord]:
        """Return the jobs that wait or are worked on, oldest first."""
        return [_job(row) for row in self._read(f"{_SELECT_JOB} WHERE open = 1 ORDER BY job_id")]

    def count_open(self) -> int:
        """Return how many jobs wait or are worked on."""
        return int(self._read("SELECT count(*) FROM jobs WHERE open = 1")[0][0])

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

    def _read(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, _store_errors():
            return self._db.execute(statement, values).fetchall()

    @contextmanager
    def _write(self) -> Generator[sqlite3.Connection]:
        with self._lock, _store_errors():
            self._db.execute("BEGIN IMMEDIATE")
            with undoing(self._roll_back):
                yield self._db
                self._db.execute("COMMIT")

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


_SELECT_DOCUMENT = (
    "SELECT document_id, fingerprint, chunks, warning FROM documents WHERE org_id = ? AND data_source_id = ?"
)
_SELECT_JOB = "SELECT body, org_id, user_id, request, cancelled, attempts FROM jobs"


def _job(row: tuple[Any, ...]) -> JobRecord:
    body, org_id, user_id, request, cancelled, attempts = row
    return JobRecord(
        output=IngestionOutput.model_validate_json(body),
        org_id=org_id,
        user_id=user_id,
        request=None if request is None else json.loads(request),
        cancelled=bool(cancelled),
        attempts=attempts,
    )


def _store_errors() -> Translated:
    return Translated((sqlite3.Error, OSError), _store_failure)


def _store_failure(error: Exception) -> RagFailure:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return IndexFull()
    return IndexUnavailable("The catalogue beside the index cannot be read or written; check its folder.")
