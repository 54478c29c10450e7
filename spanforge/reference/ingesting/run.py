"""One attempt at a job: what is told of it meanwhile, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from spanforge import _clock
from spanforge.reference.failures import RagFailure
from spanforge.reference.ingesting.catalog import Catalog
from spanforge.reference.ingesting.ingestor import Ingestor, Progress
from spanforge.reference.ingesting.loading import Waiting
from spanforge.reference.models import IngestionOutput, JobStatus

CANCELLED: Final = "CANCELLED"
"""Reason of a job that ended because it was asked to."""
INTERRUPTED: Final = "INTERRUPTED"
"""Reason of a job whose process died and which nobody can finish: its documents are gone, or it was begun too often."""
TIMED_OUT: Final = "TIMED_OUT"
"""Reason of a job that took longer than it may."""
FAILED: Final = "INTERNAL_ERROR"
"""Reason of a job that met an error nobody foresaw."""
_REPORT_S: Final = 1.0
"""Seconds between two notes of how a job stands: each waits for the disk."""


@dataclass(slots=True)
class Run:
    """An attempt.

    Attributes:
        catalog: Where the job is written down.
        job: How it stands.
        report: Called with its state after each document.
        timeout_s: Seconds it may take.
        stopping: Whether it is to be broken off, for somebody to take it up again.
    """

    catalog: Catalog
    job: IngestionOutput
    report: Callable[[IngestionOutput], None]
    timeout_s: float
    stopping: Callable[[], bool]
    _began: float = field(default_factory=_clock.monotonic, init=False)
    _reported: float = field(default_factory=_clock.monotonic, init=False)
    # What the run counts in, asked once more where it ends early: for what was written after the last report.
    _counted: Progress | None = field(default=None, init=False)

    def do(self, ingestor: Ingestor, todo: Iterable[Waiting]) -> IngestionOutput:
        """Do the job, and return how it stands then: ended, or queued where it was broken off."""
        try:
            counted = ingestor.run(todo, report=self._on_progress, stop=self._must_stop)
        except RagFailure as failure:
            return failed(_with(self.job, self._counted), failure.code)
        state = _with(self.job, counted)
        if counted.stopped:
            return failed(state, CANCELLED)
        return self._complete(state) if state.progress >= 1.0 or not state.total else self._early(state)

    def _complete(self, state: IngestionOutput) -> IngestionOutput:
        if state.failures and not state.indexed:
            return failed(state, state.failures[0].code)
        return state.model_copy(update={"status": JobStatus.COMPLETED})

    def _early(self, state: IngestionOutput) -> IngestionOutput:
        """Return how a job stands that did not come to its end."""
        if self.catalog.is_cancelled(state.job_id):
            return failed(state, CANCELLED)
        if self._is_late():
            return failed(state, TIMED_OUT)
        # Neither stopped nor done, and we go on: what it was to do is gone.
        return state.model_copy(update={"status": JobStatus.QUEUED}) if self.stopping() else failed(state, INTERRUPTED)

    def _on_progress(self, progress: Progress) -> None:
        self._counted = progress
        self.job = _with(self.job, progress)
        self.report(self.job)
        now = _clock.monotonic()
        if now - self._reported >= _REPORT_S:
            self._reported = now
            self.catalog.update_job(self.job)

    def _must_stop(self) -> bool:
        return self.stopping() or self._is_late() or self.catalog.is_cancelled(self.job.job_id)

    def _is_late(self) -> bool:
        return _clock.monotonic() > self._began + self.timeout_s


def failed(job: IngestionOutput, reason: str) -> IngestionOutput:
    """Return a job as one that failed."""
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
            "warnings": list(progress.warnings),
            "removed": progress.removed,
        }
    )
