"""Ingestion as jobs: followed, cancelled, and taken up again after a crash.

A job's lock is held from before the job can be seen until it has ended. A job that has not ended while nobody holds
its lock belonged to a process that died: whoever runs it again does what is left, and documents that were done cost
nothing.

A job writes only in turns, and begins each by asking whether it still may: from the moment a job is cancelled, or its
source deleted, nothing of it is written any more, and what was written are whole documents.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any, Final

from ulid import ULID

from spanforge.reference._extras import Untyped, load
from spanforge.reference.failures import InvalidInput, undoing
from spanforge.reference.ingesting import uploads
from spanforge.reference.ingesting.catalog import OPEN, Catalog, JobRecord
from spanforge.reference.ingesting.fair_queue import FairQueue
from spanforge.reference.ingesting.ingestor import Ingestor
from spanforge.reference.ingesting.loading import Waiting, waiting
from spanforge.reference.ingesting.run import CANCELLED, FAILED, INTERRUPTED, Run, failed
from spanforge.reference.models import Document, IngestionOutput, JobStatus, User

MAX_ATTEMPTS: Final = 3
"""A job that was begun so often and never ended takes its process down with it: it is not begun again."""
BACKGROUND: Final = 2
"""Jobs of one pipeline worked on at once in the background."""
CATALOG_FILE: Final = "catalog.sqlite"
_WHAT: Final = frozenset({"paths", "upload"})
"""What a request says beside the settings: what is to be ingested."""
UPLOADS: Final = "uploads"
"""Folder of the documents that wait, in a home."""
_LOCKS: Final = "jobs"


class Jobs:
    """The ingestion jobs of one catalogue.

    Args:
        catalog: Where jobs are written down.
        home: Folder for locks and for documents that wait; absent, both are kept in memory.
        make_ingestor: Makes what does a job, from organisation, source, a question whether it still may, and settings.
        writing: Held by whoever writes.
    """

    def __init__(
        self,
        catalog: Catalog,
        home: Path | None,
        make_ingestor: Callable[..., Ingestor],
        writing: AbstractContextManager[Any],
    ) -> None:
        self._catalog = catalog
        self._home = home
        self._make_ingestor = make_ingestor
        self._writing = writing
        self._lock = threading.Lock()
        self._claims: dict[str, Untyped] = {}
        # Jobs that were made here and not begun, with what they are to do where only we know it.
        self._made: dict[str, list[Waiting] | None] = {}
        self._queue = FairQueue(BACKGROUND, "spanforge-ingest")
        self._queued: dict[str, Future[Any]] = {}

    def create(
        self, items: Iterable[Document | Path | str], user: User, data_source_id: str, settings: dict[str, Any]
    ) -> IngestionOutput:
        """Write down a job and return it. Files can be taken up again by another process, documents cannot."""
        items = list(items)
        todo = waiting(items, self._home)
        request = dict(settings)
        if not any(isinstance(item, Document) for item in items):
            paths = [str(Path(item).resolve()) for item in items if not isinstance(item, Document)]
            request["paths"] = [path.encode("utf-8", "surrogateescape").hex() for path in paths]
        return self._put(_queued(str(ULID()), data_source_id, len(todo)), user, request, todo)

    def spool(
        self, documents: Iterable[Document], user: User, data_source_id: str, settings: dict[str, Any]
    ) -> IngestionOutput:
        """Put documents on the disk, write down a job for them, and return it; any process can take it up.

        Raises:
            IndexFull: The disk is full.
            IndexUnavailable: The folder cannot be written.
        """
        if self._home is None:
            return self.create(documents, user, data_source_id, settings)
        job_id = str(ULID())
        total = uploads.spool(self._home / UPLOADS / job_id, documents)
        return self._put(_queued(job_id, data_source_id, total), user, {**settings, "upload": True}, None)

    def waiting_bytes(self) -> int:
        """Return the size of the documents that wait on the disk."""
        return 0 if self._home is None else uploads.size(self._home / UPLOADS)

    def run(
        self,
        job_id: str,
        report: Callable[[IngestionOutput], None] | None = None,
        *,
        timeout_s: float = math.inf,
        stopping: Callable[[], bool] = lambda: False,
    ) -> IngestionOutput | None:
        """Work on a job until it ends.

        Args:
            job_id: The job.
            report: Called with its state after each document.
            timeout_s: Seconds after which it ends with the reason `TIMED_OUT`.
            stopping: Asked again and again; once true, the job is broken off and can be taken up again.

        Returns:
            How it stands then; None where there is nothing to do: it has ended, is gone, or somebody else works on it.
            Failures of the store are in its ``reason``.
        """
        made = job_id in self._made
        todo = self._made.pop(job_id, None)
        if not made and not self._claim(job_id):
            return None
        try:
            record = self._begun(job_id)
            if record is None:
                return None
            run = Run(self._catalog, record.output, report or (lambda _: None), timeout_s, stopping)
            return self._worked_on(record, run, todo if todo is not None else self._to_do(record))
        finally:
            self._let_go(job_id)

    def start(self, job: IngestionOutput) -> None:
        """Work on a job in the background; jobs of one source are done one after the other, as they were started."""
        queue = self._queue
        # All are one party, and its sources take turns.
        work = queue.submit("", job.data_source_id, lambda: self.run(job.job_id, stopping=lambda: queue.is_closing))
        self._queued[job.job_id] = work
        work.add_done_callback(lambda _: self._queued.pop(job.job_id, None))

    def get(self, job_id: str, user: User) -> IngestionOutput:
        """Return a job of the user's organisation that the user started.

        Raises:
            InvalidInput: There is none of this id that the user may see.
        """
        record = self._catalog.job(job_id)
        if record is None or (record.org_id, record.user_id) != (user.org_id, user.user_id):
            raise InvalidInput("job_id names no job of this user.")
        return record.output

    def wait(self, job_id: str, timeout: float | None = None) -> None:
        """Wait until a job started here ends, for at most ``timeout`` seconds."""
        work = self._queued.get(job_id)
        if work is not None:
            wait([work], timeout)

    def cancel(self, job_id: str, user: User) -> IngestionOutput:
        """Ask a job to stop and return it; nothing of it is written from now on.

        One that waits has ended, with the reason `CANCELLED`; one at work does so when it notices; one that had ended
        stays as it is.

        Raises:
            InvalidInput: There is none of this id that the user may see.
        """
        with self._writing:
            job = self.get(job_id, user)
            self._catalog.cancel_job(job_id)
            return self._ended(failed(job, CANCELLED)) if job.status is JobStatus.QUEUED else job

    def forget(self, job_ids: Iterable[str]) -> None:
        """Delete what waits for jobs that are gone with their source."""
        for job_id in job_ids:
            self._remove_upload(job_id)

    def resume(self, user: User) -> list[IngestionOutput]:
        """Finish the user's jobs whose process died; return how they ended."""
        left = [
            record.output.job_id
            for record in self._catalog.jobs(user.org_id)
            if record.is_open and record.user_id == user.user_id and record.output.job_id not in self._claims
        ]
        ran = [self.run(job_id) for job_id in left]
        return [job for job in ran if job is not None]

    def close(self) -> None:
        """Stop the jobs in the background after the document at hand, wait for them, and give back all others."""
        self._queue.close()
        for job_id in list(self._made):
            del self._made[job_id]
            self._let_go(job_id)

    def _put(
        self, job: IngestionOutput, user: User, request: dict[str, Any], todo: list[Waiting] | None
    ) -> IngestionOutput:
        # Before it can be seen: whoever looks for jobs that nobody works on must not find it.
        self._claim(job.job_id)
        with undoing(lambda: self._remove_upload(job.job_id)), undoing(lambda: self._let_go(job.job_id)):
            self._catalog.put_job(JobRecord(job, user.org_id, user.user_id, request))
            self._made[job.job_id] = todo
        return job

    def _begun(self, job_id: str) -> JobRecord | None:
        """Return a job that is now worked on; None where it has ended, or is gone.

        It takes a turn for that: between a look at a job that waits and its change, it might be cancelled.
        """
        with self._writing:
            record = self._catalog.job(job_id)
            if record is None or not record.is_open:
                return None
            self._catalog.update_job(record.output.model_copy(update={"status": JobStatus.PROCESSING}))
            self._catalog.count_attempt(job_id)
            return self._catalog.job(job_id)

    def _to_do(self, record: JobRecord) -> Iterable[Waiting] | None:
        """Return what a job of another process was to do; None where nobody knows any more."""
        request = record.request or {}
        if "paths" in request:
            paths = (bytes.fromhex(path).decode("utf-8", "surrogateescape") for path in request["paths"])
            return waiting(paths, self._home)
        if "upload" in request and self._home is not None:
            return uploads.spooled(self._home / UPLOADS / record.output.job_id)
        return None

    def _worked_on(self, record: JobRecord, run: Run, todo: Iterable[Waiting] | None) -> IngestionOutput:
        job = record.output
        if record.cancelled:
            return self._ended(failed(job, CANCELLED))
        if todo is None or record.attempts > MAX_ATTEMPTS:
            return self._ended(failed(job, INTERRUPTED))
        # What stands unless the work says otherwise: a job must not seem to run for ever after an unforeseen error.
        state = failed(job, FAILED)
        try:
            state = run.do(self._ingestor(record), todo)
        finally:
            self._ended(state)
        return state

    def _ingestor(self, record: JobRecord) -> Ingestor:
        job, request = record.output, record.request or {}
        settings = {name: value for name, value in request.items() if name not in _WHAT}
        return self._make_ingestor(
            record.org_id, job.data_source_id, lambda: not self._catalog.is_cancelled(job.job_id), **settings
        )

    def _ended(self, job: IngestionOutput) -> IngestionOutput:
        """Write down how a job ended; one that was broken off for our sake has not been tried."""
        if job.status in OPEN:
            self._catalog.count_attempt(job.job_id, -1)
        else:
            self._remove_upload(job.job_id)
        self._catalog.update_job(job)
        return job

    def _remove_upload(self, job_id: str) -> None:
        if self._home is not None:
            uploads.remove(self._home / UPLOADS / job_id)

    def _claim(self, job_id: str) -> bool:
        """Take a job for this object, unless somebody works on it."""
        with self._lock:
            if job_id in self._claims:
                return False
            if self._home is None:
                self._claims[job_id] = None
                return True
            filelock = load("filelock", "reference")
            path = self._home / _LOCKS / f"{job_id}.lock"
            path.parent.mkdir(exist_ok=True, mode=0o700)
            lock = filelock.FileLock(path, timeout=0, thread_local=False)  # jobs end in another thread than they begin
            with suppress(filelock.Timeout):
                lock.acquire()
                self._claims[job_id] = lock
            return job_id in self._claims

    def _let_go(self, job_id: str) -> None:
        """Give a job back; one that has ended, or is gone, leaves no file behind."""
        with self._lock:
            lock = self._claims.pop(job_id, None)
        if lock is None:
            return
        try:
            record = self._catalog.job(job_id)
            if record is None or not record.is_open:
                # Whoever opened it before gets a lock on nothing, and looks at the job again before doing anything.
                Path(lock.lock_file).unlink(missing_ok=True)
        finally:
            lock.release()


def left_behind(home: Path) -> list[JobRecord]:
    """Return the jobs that the last process on a folder left, and delete what waits for no job.

    Raises:
        IndexUnavailable: The catalogue cannot be read.
    """
    file = home / CATALOG_FILE
    if not file.is_file():
        return []
    catalog = Catalog(file)
    records = catalog.open_jobs()
    catalog.close()
    known = {record.output.job_id for record in records}
    for upload in (home / UPLOADS).glob("*"):
        if upload.name not in known:
            uploads.remove(upload)
    return records


def forget_ended(home: Path, before_s: float) -> int:
    """Forget the jobs of a folder that had ended and were made before a moment; return how many.

    Args:
        home: The folder.
        before_s: The moment, in seconds since the epoch.

    Raises:
        IndexUnavailable: The catalogue cannot be written.
    """
    file = home / CATALOG_FILE
    if not file.is_file():
        return 0
    with closing(Catalog(file)) as catalog:
        return catalog.forget_jobs(ULID.from_timestamp(before_s))


def _queued(job_id: str, data_source_id: str, total: int) -> IngestionOutput:
    return IngestionOutput(job_id=job_id, data_source_id=data_source_id, status=JobStatus.QUEUED, total=total)
