"""What the server knows of one organisation beside its index: names of data sources, and jobs.

Deleted rows are overwritten, and there is no log file that would keep them: what is deleted is gone from the disk.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spanforge.reference import User
from spanforge.reference.failures import IndexFull, IndexUnavailable, RagFailure, Translated
from spanforge.reference.models import IngestionOutput

if TYPE_CHECKING:
    from pathlib import Path

KEPT_JOBS: Final = 1_000
"""Ended jobs that are remembered; the oldest are forgotten beyond it."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS names (source_id TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS jobs (
  job_id TEXT PRIMARY KEY, source_id TEXT NOT NULL, user TEXT NOT NULL, cut TEXT NOT NULL, body TEXT NOT NULL,
  open INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS open_jobs ON jobs (open);
"""
_SELECT: Final = "SELECT body, user, cut, attempts, cancelled FROM jobs"


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it was last written.

    Attributes:
        output: Its state.
        user: Who started it.
        cut: `chunk_size` and `chunk_overlap`.
        attempts: How often it was begun.
        cancelled: Whether it was asked to stop.
    """

    output: IngestionOutput
    user: User
    cut: dict[str, int]
    attempts: int = 0
    cancelled: bool = False


class Store:
    """One file. Safe for threads."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30.0)
        with self._lock:
            for pragma in ("secure_delete=ON", "journal_mode=DELETE", "synchronous=FULL"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    # --- names ---

    def put_name(self, source_id: str, name: str) -> None:
        """Name a data source."""
        self._run("INSERT OR REPLACE INTO names VALUES (?, ?)", (source_id, name))

    def names(self) -> dict[str, str]:
        """Return the names of all data sources by id."""
        return dict(self._run("SELECT source_id, name FROM names"))

    def forget_source(self, source_id: str) -> list[str]:
        """Forget a data source's name and jobs; return the ids of the jobs."""
        jobs = [row[0] for row in self._run("SELECT job_id FROM jobs WHERE source_id = ?", (source_id,))]
        self._run("DELETE FROM jobs WHERE source_id = ?", (source_id,))
        self._run("DELETE FROM names WHERE source_id = ?", (source_id,))
        return jobs

    # --- jobs ---

    def add(self, row: JobRow) -> None:
        """Add a job, and forget the oldest ended ones beyond what is kept."""
        job, user = row.output, row.user.model_dump_json()
        self._run(
            "INSERT INTO jobs (job_id, source_id, user, cut, body, open) VALUES (?, ?, ?, ?, ?, 1)",
            (job.job_id, job.data_source_id, user, json.dumps(row.cut), job.model_dump_json()),
        )
        self._run(
            "DELETE FROM jobs WHERE open = 0 AND job_id NOT IN "
            "(SELECT job_id FROM jobs WHERE open = 0 ORDER BY job_id DESC LIMIT ?)",
            (KEPT_JOBS,),
        )

    def update(self, output: IngestionOutput, *, is_open: bool) -> None:
        """Write a job's state; one that was forgotten meanwhile stays forgotten."""
        self._run(
            "UPDATE jobs SET body = ?, open = ? WHERE job_id = ?",
            (output.model_dump_json(), int(is_open), output.job_id),
        )

    def begin(self, job_id: str) -> None:
        """Count an attempt at a job."""
        self._run("UPDATE jobs SET attempts = attempts + 1 WHERE job_id = ?", (job_id,))

    def give_back(self, job_id: str) -> None:
        """Count an attempt no more: it was broken off for the server's sake, and not by what the job holds."""
        self._run("UPDATE jobs SET attempts = attempts - 1 WHERE job_id = ?", (job_id,))

    def cancel(self, job_id: str) -> None:
        """Note that a job was asked to stop."""
        self._run("UPDATE jobs SET cancelled = 1 WHERE job_id = ?", (job_id,))

    def is_cancelled(self, job_id: str) -> bool:
        """Tell whether a job was asked to stop, or is not there any more."""
        rows = self._run("SELECT cancelled FROM jobs WHERE job_id = ?", (job_id,))
        return not rows or bool(rows[0][0])

    def job(self, job_id: str) -> JobRow | None:
        """Return a job, None where there is none of this id."""
        rows = self._run(f"{_SELECT} WHERE job_id = ?", (job_id,))
        return _row(rows[0]) if rows else None

    def open_jobs(self) -> list[JobRow]:
        """Return the jobs that wait or run, oldest first."""
        return [_row(row) for row in self._run(f"{_SELECT} WHERE open = 1 ORDER BY job_id")]

    def count_open(self) -> int:
        """Return how many jobs wait or run."""
        return int(self._run("SELECT count(*) FROM jobs WHERE open = 1")[0][0])

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, Translated((sqlite3.Error,), _failure):
            return self._db.execute(statement, values).fetchall()


def _failure(error: Exception) -> RagFailure:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return IndexFull()
    return IndexUnavailable("The server's own records cannot be read or written; check its folder.")


def _row(row: tuple[Any, ...]) -> JobRow:
    body, user, cut, attempts, cancelled = row
    return JobRow(
        IngestionOutput.model_validate_json(body),
        User.model_validate_json(user),
        json.loads(cut),
        attempts,
        bool(cancelled),
    )
