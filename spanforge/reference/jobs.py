"""Ingestion as jobs: followed, cancelled, and taken up again after a crash.

A job's lock is held from before the job can be seen until it has ended. A job that has not ended while nobody holds
its lock belonged to a process that died; `Jobs.resume` does it again, and documents that were done cost nothing.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulid import ULID

from spanforge import _clock
from spanforge.reference._extras import load
from spanforge.reference.catalog import JobRecord
from spanforge.reference.failures import InvalidInput, RagFailure
from spanforge.reference.loading import waiting
from spanforge.reference.models import Document, IngestionOutput, JobStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from spanforge.reference._extras import Untyped
    from spanforge.reference.catalog import Catalog
    from spanforge.reference.ingestion import Ingestor, Progress
    from spanforge.reference.loading import Waiting
    from spanforge.reference.models import User

CANCELLED = "CANCELLED"
"""Reason of a job that ended because it was asked to."""
INTERRUPTED = "INTERRUPTED"
"""Reason of a job whose process died and whose documents were not files, so that nobody can finish it."""
_REPORT_SECONDS = 0.2
_UNFINISHED = frozenset({JobStatus.QUEUED, JobStatus.PROCESSING})


class Jobs:
    """Runs ingestion jobs over one catalogue, each in the caller's thread or in one of its own."""

    def __init__(self, catalog: Catalog, home: Path | None, make_ingestor: Callable[..., Ingestor]) -> None:
        self._catalog = catalog
        self._home = home
        self._make_ingestor = make_ingestor
        self._lock = threading.Lock()
        self._claims: dict[str, Untyped] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._closing = threading.Event()

    def create(
        self,
        items: Iterable[Document | Path | str],
        user: User,
        data_source_id: str,
        settings: dict[str, Any],
    ) -> tuple[IngestionOutput, list[Waiting]]:
        """Queue a job and return it with what it is to do. It is kept for the caller, who runs or starts it."""
        items = list(items)
        todo = waiting(items)
        job = IngestionOutput(
            job_id=str(ULID()), data_source_id=data_source_id, status=JobStatus.QUEUED, total=len(todo)
        )
        request: dict[str, Any] | None = None
        if not any(isinstance(item, Document) for item in items):
            paths = [str(Path(item).resolve()) for item in items if not isinstance(item, Document)]
            request = {"paths": [path.encode("utf-8", "surrogateescape").hex() for path in paths], **settings}
        # Before it can be seen: whoever looks for jobs that nobody works on must not find it.
        self._claim(job.job_id)
        done = False
        try:
            self._catalog.put_job(JobRecord(job, user.org_id, user.user_id, request))
            done = True
        finally:
            if not done:
                self._let_go(job.job_id)
        return job, todo

    def run(
        self,
        job: IngestionOutput,
        todo: Sequence[Waiting],
        user: User,
        settings: dict[str, Any],
        report: Callable[[IngestionOutput], None] | None = None,
    ) -> IngestionOutput:
        """Work on a job until it ends, and return how it ended. Failures of the store are in its ``reason``."""
        try:
            return self._work(job, todo, user, settings, report)
        finally:
            self._let_go(job.job_id)
            self._threads.pop(job.job_id, None)

    def start(
        self, job: IngestionOutput, todo: Sequence[Waiting], user: User, settings: dict[str, Any]
    ) -> threading.Thread:
        """Work on a job in a thread of its own."""
        thread = threading.Thread(
            target=self.run,
            args=(job, todo, user, settings),
            name=f"spanforge-ingest-{job.job_id}",
            daemon=True,
        )
        self._threads[job.job_id] = thread
        thread.start()
        return thread

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
        thread = self._threads.get(job_id)
        if thread is not None:
            thread.join(timeout)

    def cancel(self, job_id: str, user: User) -> IngestionOutput:
        """Ask a job to stop. It ends failed, with the reason `CANCELLED`, after the document at hand."""
        self.get(job_id, user)
        self._catalog.cancel_job(job_id)
        return self.get(job_id, user)

    def resume(self, user: User) -> list[IngestionOutput]:
        """Finish the user's jobs whose process died; return how they ended."""
        ended: list[IngestionOutput] = []
        for listed in self._catalog.jobs(user.org_id):
            job_id = listed.output.job_id
            if listed.user_id != user.user_id or listed.output.status not in _UNFINISHED or not self._claim(job_id):
                continue
            try:
                # As it is now: it may have ended since it was listed, or gone with its data source.
                record = self._catalog.job(job_id)
                if record is not None and record.output.status in _UNFINISHED:
                    ended.append(self._take_up(record, user))
            finally:
                self._let_go(job_id)
        return ended

    def close(self) -> None:
        """Stop the jobs in the background after the document at hand, and wait for them."""
        self._closing.set()
        for thread in list(self._threads.values()):
            if thread is not threading.current_thread():
                thread.join()

    def _take_up(self, record: JobRecord, user: User) -> IngestionOutput:
        if record.request is None or record.cancelled:
            reason = CANCELLED if record.cancelled else INTERRUPTED
            job = record.output.model_copy(update={"status": JobStatus.FAILED, "reason": reason})
            self._catalog.update_job(job)
            return job
        settings = dict(record.request)
        paths = [bytes.fromhex(path).decode("utf-8", "surrogateescape") for path in settings.pop("paths")]
        todo = waiting(paths)
        job = record.output.model_copy(update={"total": len(todo)})
        return self._work(job, todo, user, settings, None)

    def _work(
        self,
        job: IngestionOutput,
        todo: Sequence[Waiting],
        user: User,
        settings: dict[str, Any],
        report: Callable[[IngestionOutput], None] | None,
    ) -> IngestionOutput:
        state = job.model_copy(update={"status": JobStatus.PROCESSING})
        self._catalog.update_job(state)
        reported = _clock.monotonic()

        def on_progress(progress: Progress) -> None:
            nonlocal reported, state
            state = _with(state, progress)
            if report is not None:
                report(state)
            now = _clock.monotonic()
            if now - reported >= _REPORT_SECONDS:
                reported = now
                self._catalog.update_job(state)

        def is_cancelled() -> bool:
            return self._catalog.is_cancelled(job.job_id)

        try:
            ingestor = self._make_ingestor(user.org_id, job.data_source_id, lambda: not is_cancelled(), **settings)
            progress = ingestor.run(todo, report=on_progress, stop=lambda: self._closing.is_set() or is_cancelled())
            state = _with(state, progress).model_copy(update={"vector_ids": progress.vector_ids})
            whole = not progress.stopped and (state.progress >= 1.0 or not state.total)
            if not whole and self._closing.is_set() and not is_cancelled():
                return state
            status, reason = (JobStatus.COMPLETED, None) if whole else (JobStatus.FAILED, CANCELLED)
        except RagFailure as failure:
            status, reason = JobStatus.FAILED, failure.code
        state = state.model_copy(update={"status": status, "reason": reason})
        self._catalog.update_job(state)
        return state

    def _claim(self, job_id: str) -> bool:
        """Take a job for this object, unless somebody works on it."""
        with self._lock:
            if job_id in self._claims:
                return False
            if self._home is None:
                self._claims[job_id] = None
                return True
            filelock = load("filelock", "reference")
            path = self._home / "jobs" / f"{job_id}.lock"
            path.parent.mkdir(exist_ok=True)
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
            if record is None or record.output.status not in _UNFINISHED:
                # Whoever opened it before gets a lock on nothing, and looks at the job again before doing anything.
                Path(lock.lock_file).unlink(missing_ok=True)
        finally:
            lock.release()


def _with(job: IngestionOutput, progress: Progress) -> IngestionOutput:
    return job.model_copy(
        update={
            "indexed": progress.indexed,
            "unchanged": progress.unchanged,
            "chunks": progress.chunks,
            "failures": list(progress.failures),
        }
    )
