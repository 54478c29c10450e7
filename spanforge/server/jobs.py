"""Ingestion jobs of the server: asynchronous, cancelled at any moment, taken up again after a crash.

A job writes only in turns, and begins each by asking whether it still may: from the moment a job is cancelled, or its
source deleted, nothing of it is written any more, and what was written are whole documents.

Jobs of one source are worked on one after the other, as they were sent: of a document that is in two of them the later
text stays.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import structlog
from ulid import ULID

from spanforge import _clock
from spanforge.reference.chunking import Chunker
from spanforge.reference.failures import IndexFull, RagFailure
from spanforge.reference.index import Selection
from spanforge.reference.ingestion import Ingestor, Turn
from spanforge.reference.jobs import CANCELLED, INTERRUPTED
from spanforge.reference.models import IngestionOutput, JobStatus
from spanforge.reference.parsing import Limits
from spanforge.reference.tokens import default_counter
from spanforge.server import uploads
from spanforge.server.problems import Problem
from spanforge.server.store import JobRow, Store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spanforge.reference import Document, User
    from spanforge.reference.ingestion import Progress
    from spanforge.sdk import ServerSettings
    from spanforge.server.tenants import Tenant, Tenants

_log: Any = structlog.get_logger("spanforge.server")

FAILED: Final = "INTERNAL_ERROR"
"""Reason of a job that met an error nobody foresaw."""
TIMED_OUT: Final = "TIMED_OUT"
"""Reason of a job that took longer than the server allows."""
MAX_ATTEMPTS: Final = 3
"""A job that was begun so often and never ended takes the process down with it: it is not begun again."""
_REPORT_S: Final = 0.2


class JobRunner:
    """Runs the jobs of all organisations in a few threads."""

    def __init__(self, tenants: Tenants, settings: ServerSettings) -> None:
        self._tenants = tenants
        self._settings = settings
        self._pool = ThreadPoolExecutor(settings.ingest_workers, "spanforge-ingest")
        self._closing = threading.Event()
        self._lock = threading.RLock()
        self._waiting: dict[tuple[str, str], deque[str]] = {}

    def submit(
        self, tenant: Tenant, user: User, source_id: str, documents: Iterable[Document], cut: dict[str, int]
    ) -> IngestionOutput:
        """Put documents on the disk, queue a job for them, and return it.

        Raises:
            Problem: The source may not be written, or too many jobs wait.
            IndexFull: The organisation's quota is used up.
        """
        with tenant.writing:
            if tenant.store.count_open() >= self._settings.max_jobs_per_org:
                raise Problem("TOO_MANY_JOBS", headers={"Retry-After": "5"})
            if tenant.pipeline.index.count(Selection(tenant.org_id)) >= self._settings.max_chunks_per_org:
                raise IndexFull
            job_id = str(ULID())
            total = uploads.spool(tenant.uploads / job_id, documents)
            job = IngestionOutput(job_id=job_id, data_source_id=source_id, status=JobStatus.QUEUED, total=total)
            tenant.store.add(JobRow(job, user, cut))
            self._queue(tenant.org_id, job)
        return job

    def get(self, tenant: Tenant, user: User, job_id: str) -> IngestionOutput:
        """Return a job that the user started.

        Raises:
            Problem: There is none.
        """
        row = tenant.store.job(job_id)
        if row is None or row.user.user_id != user.user_id:
            raise Problem("NOT_FOUND")
        return row.output

    def cancel(self, tenant: Tenant, user: User, job_id: str) -> IngestionOutput:
        """Ask a job to stop and return it; one that had ended stays as it is.

        Raises:
            Problem: There is none that the user started.
        """
        with tenant.writing:
            job = self.get(tenant, user, job_id)
            tenant.store.cancel(job_id)
            if job.status is JobStatus.QUEUED:
                job = _failed(job, CANCELLED)
                tenant.store.update(job, is_open=False)
                uploads.remove(tenant.uploads / job_id)
        return job

    def forget(self, tenant: Tenant, source_id: str) -> None:
        """Forget the jobs of a source that is being deleted; the caller holds the turn to write."""
        for job_id in tenant.store.forget_source(source_id):
            uploads.remove(tenant.uploads / job_id)

    def resume(self) -> int:
        """Take up what the last process left, and return how many jobs that were.

        Uploads that never became a job are deleted.
        """
        found = 0
        for folder in self._tenants.known():
            store = Store(folder / "jobs.sqlite")
            rows = store.open_jobs()
            store.close()
            waiting = {row.output.job_id for row in rows}
            for upload in (folder / "uploads").glob("*"):
                if upload.name not in waiting:
                    uploads.remove(upload)
            for row in rows:
                self._queue(row.user.org_id, row.output)
            found += len(rows)
        return found

    @property
    def is_closing(self) -> bool:
        """Whether no more jobs are begun."""
        return self._closing.is_set()

    def close(self) -> None:
        """Stop: jobs at work end after the document at hand and stay to be taken up again."""
        with self._lock:
            self._closing.set()
        self._pool.shutdown(cancel_futures=True)

    def _queue(self, org_id: str, job: IngestionOutput) -> None:
        """Put a job behind those of its source that are not done."""
        with self._lock:
            line = self._waiting.setdefault((org_id, job.data_source_id), deque())
            line.append(job.job_id)
            # Where we stop it is left for the next server to take up.
            if len(line) == 1 and not self._closing.is_set():
                self._start(org_id, job.data_source_id, job.job_id)

    def _start(self, org_id: str, source_id: str, job_id: str) -> None:
        def ended(done: Future[None]) -> None:
            _note(done)
            with self._lock:
                line = self._waiting[org_id, source_id]
                line.popleft()
                if not line:
                    del self._waiting[org_id, source_id]
                elif not self._closing.is_set():
                    self._start(org_id, source_id, line[0])

        self._pool.submit(self._run, org_id, job_id).add_done_callback(ended)

    def _run(self, org_id: str, job_id: str) -> None:
        with self._tenants.use(org_id) as tenant:
            row = self._taken_up(tenant, job_id)
            if row is None:
                return
            # What stands unless the work says otherwise: a job must not seem to run for ever after an unforeseen error.
            job: IngestionOutput | None = _failed(row.output, FAILED)
            try:
                job = self._work(tenant, row)
            finally:
                if job is None:
                    tenant.store.give_back(job_id)
                else:
                    tenant.store.update(job, is_open=False)
                    uploads.remove(tenant.uploads / job_id)

    def _taken_up(self, tenant: Tenant, job_id: str) -> JobRow | None:
        """Return a job that is now worked on; None where it has ended, or is gone.

        It takes a turn for that: between a look at a job that waits and its change, it might be cancelled.
        """
        with tenant.writing:
            row = tenant.store.job(job_id)
            if self._closing.is_set() or row is None or row.output.status is JobStatus.FAILED:
                return None
            tenant.store.update(row.output.model_copy(update={"status": JobStatus.PROCESSING}), is_open=True)
            tenant.store.begin(job_id)
            return tenant.store.job(job_id)

    def _work(self, tenant: Tenant, row: JobRow) -> IngestionOutput | None:
        """Do a job and return how it ended; None where it is to be taken up again."""
        job, store = row.output, tenant.store
        if row.cancelled:
            return _failed(job, CANCELLED)
        if row.attempts > MAX_ATTEMPTS:
            return _failed(job, INTERRUPTED)
        state = job
        reported = started = _clock.monotonic()
        # What the run counts in, asked once more where it ends early: for what was written after the last report.
        counted: Progress | None = None

        def report(progress: Progress) -> None:
            nonlocal state, reported, counted
            counted = progress
            state = _with(state, progress)
            now = _clock.monotonic()
            if now - reported >= _REPORT_S:
                reported = now
                store.update(state, is_open=True)

        def late() -> bool:
            return _clock.monotonic() - started > self._settings.ingest_timeout_s

        try:
            progress = self._ingestor(tenant, row).run(
                uploads.spooled(tenant.uploads / job.job_id),
                report=report,
                stop=lambda: self._closing.is_set() or late() or store.is_cancelled(job.job_id),
            )
        except RagFailure as failure:
            return _failed(_with(state, counted), failure.code)
        state = _with(state, progress)
        if progress.stopped:
            return _failed(state, CANCELLED)
        return self._ended(store, state, late=late())

    def _ended(self, store: Store, state: IngestionOutput, *, late: bool) -> IngestionOutput | None:
        """Return how a job whose work is over ended; None where it was only broken off."""
        if state.progress >= 1.0:
            return state.model_copy(update={"status": JobStatus.COMPLETED})
        if store.is_cancelled(state.job_id):
            return _failed(state, CANCELLED)
        if late:
            return _failed(state, TIMED_OUT)
        # Neither stopped nor done, and we go on: its upload is gone.
        return None if self._closing.is_set() else _failed(state, INTERRUPTED)

    def _ingestor(self, tenant: Tenant, row: JobRow) -> Ingestor:
        pipeline = tenant.pipeline
        return Ingestor(
            pipeline.index,
            pipeline.catalog,
            Chunker(default_counter(), row.cut["chunk_size"], row.cut["chunk_overlap"]),
            pipeline.embedder,
            org_id=tenant.org_id,
            data_source_id=row.output.data_source_id,
            lock=Turn(tenant.writing, lambda: not tenant.store.is_cancelled(row.output.job_id)),
            limits=Limits.within(self._settings.max_unfolded_bytes),
        )


def _note(done: Future[None]) -> None:
    """Log the kind of an error that nobody foresaw."""
    error = None if done.cancelled() else done.exception()
    if error is not None:
        _log.error("ingestion job failed", error=type(error).__name__)


def _failed(job: IngestionOutput, reason: str) -> IngestionOutput:
    return job.model_copy(update={"status": JobStatus.FAILED, "reason": reason})


def _with(job: IngestionOutput, progress: Progress | None) -> IngestionOutput:
    if progress is None:
        return job
    return job.model_copy(
        update={
            "indexed": progress.indexed,
            "unchanged": progress.unchanged,
            "chunks": progress.chunks,
            "vector_ids": list(progress.vector_ids),
            "failures": list(progress.failures),
        }
    )
