"""Ingestion jobs of all organisations: who may begin one, and whose turn it is."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog

from spanforge.reference.failures import IndexFull, InvalidInput
from spanforge.reference.index import Selection
from spanforge.reference.ingesting.fair_queue import FairQueue
from spanforge.reference.ingesting.jobs import left_behind
from spanforge.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spanforge.reference import Document, User
    from spanforge.reference.models import IngestionOutput
    from spanforge.sdk import ServerSettings
    from spanforge.server.tenants import Tenant, Tenants

_log: Any = structlog.get_logger("spanforge.server")


class JobRunner:
    """Has the jobs of all organisations done in a few threads, in which they take turns.

    Jobs of one source are worked on one after the other, as they were sent: of a document that is in two of them the
    later text stays.
    """

    def __init__(self, tenants: Tenants, settings: ServerSettings) -> None:
        self._tenants = tenants
        self._settings = settings
        self._queue = FairQueue(settings.ingest_workers, "spanforge-ingest")

    def submit(
        self, tenant: Tenant, user: User, source_id: str, documents: Iterable[Document], cut: dict[str, int]
    ) -> IngestionOutput:
        """Put documents on the disk, queue a job for them, and return it.

        Raises:
            Problem: Too many jobs wait, or too much for them.
            IndexFull: The organisation's quota is used up.
        """
        pipeline, settings = tenant.pipeline, self._settings
        with pipeline.writing:
            if pipeline.catalog.count_open() >= settings.max_jobs_per_org:
                raise Problem("TOO_MANY_JOBS", headers={"Retry-After": "5"})
            if pipeline.index.count(Selection(tenant.org_id)) >= settings.max_chunks_per_org:
                raise IndexFull
            job = pipeline.jobs.spool(documents, user, source_id, cut)
            if pipeline.jobs.waiting_bytes() > settings.max_waiting_bytes_per_org:
                pipeline.jobs.cancel(job.job_id, user)
                detail = "Wait until the documents of earlier ingestion jobs have been read, or send less at once."
                raise Problem("TOO_MANY_JOBS", detail, {"Retry-After": "5"})
            self._start(tenant.org_id, job)
        return job

    def get(self, tenant: Tenant, user: User, job_id: str) -> IngestionOutput:
        """Return a job that the user started.

        Raises:
            Problem: There is none.
        """
        with suppress(InvalidInput):
            return tenant.pipeline.jobs.get(job_id, user)
        raise Problem("NOT_FOUND")

    def cancel(self, tenant: Tenant, user: User, job_id: str) -> IngestionOutput:
        """Ask a job to stop and return it; one that had ended stays as it is.

        Raises:
            Problem: There is none that the user started.
        """
        with suppress(InvalidInput):
            return tenant.pipeline.jobs.cancel(job_id, user)
        raise Problem("NOT_FOUND")

    def resume(self) -> int:
        """Take up what the last process left, and return how many jobs that were."""
        found = 0
        for home in self._tenants.homes():
            for record in left_behind(home):
                self._start(record.org_id, record.output)
                found += 1
        return found

    @property
    def is_closing(self) -> bool:
        """Whether no more jobs are begun."""
        return self._queue.is_closing

    def close(self) -> None:
        """Stop: jobs at work end after the document at hand and stay to be taken up again."""
        self._queue.close()

    def _start(self, org_id: str, job: IngestionOutput) -> None:
        self._queue.submit(org_id, job.data_source_id, lambda: self._run(org_id, job.job_id)).add_done_callback(_note)

    def _run(self, org_id: str, job_id: str) -> None:
        with self._tenants.use(org_id) as tenant:
            tenant.pipeline.jobs.run(
                job_id, timeout_s=self._settings.ingest_timeout_s, stopping=lambda: self._queue.is_closing
            )


def _note(done: Future[None]) -> None:
    """Log the kind of an error that nobody foresaw."""
    error = None if done.cancelled() else done.exception()
    if error is not None:
        _log.error("ingestion job failed", error=type(error).__name__)
