"""One folder, many at work in it: threads that share a pipeline, pipelines that share a folder."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.between import once_after

from spanforge.reference import DataSource, Document, Pipeline, User
from spanforge.reference.failures import IndexUnavailable, NoResults, PermissionDenied
from spanforge.reference.index import Selection
from spanforge.reference.ingesting.ingestor import Stopped, Turn
from spanforge.reference.ingesting.jobs import CANCELLED
from spanforge.reference.models import JobStatus, Visibility

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

LOCAL = User()
OTHER = User(user_id="other")
ROUNDS = 8


class Gated:
    """An embedder that waits, so that a job can be met at work."""

    name = "gated"
    dimensions = 4
    dense_weight = 0.0

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.gate = threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        self.reached.set()
        assert self.gate.wait(60)
        return np.ones((len(texts), self.dimensions), dtype=np.float32) / 2


def note(name: str, text: str) -> Document:
    return Document(document_id=name, text=text)


def test_a_job_that_was_just_queued_is_not_taken_for_one_whose_process_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pipeline(tmp_path, embedder=None) as pipeline, Pipeline(tmp_path, embedder=None) as other:
        resumed: list[Any] = []
        once_after(monkeypatch, pipeline.catalog, "put_job", lambda: resumed.extend(other.jobs.resume(LOCAL)))
        job = pipeline.ingest(note("d", "The sluice opens at six."))
        assert resumed == []
        assert (job.status, pipeline.jobs.get(job.job_id, LOCAL).status) == (JobStatus.COMPLETED, JobStatus.COMPLETED)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_job_that_ends_while_it_is_looked_at_stays_as_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_memory: bool
) -> None:
    gated = Gated()
    with Pipeline(None if in_memory else tmp_path, embedder=gated) as pipeline:
        job = pipeline.ingest(note("d", "The sluice opens at six."), background=True)
        assert gated.reached.wait(30)
        assert pipeline.jobs.resume(LOCAL) == []

        def finish() -> None:
            gated.gate.set()
            pipeline.jobs.wait(job.job_id, 60)

        once_after(monkeypatch, pipeline.catalog, "jobs", finish)
        assert pipeline.jobs.resume(LOCAL) == []
        assert pipeline.jobs.get(job.job_id, LOCAL).status is JobStatus.COMPLETED


def test_jobs_that_ended_leave_nothing_but_their_record(tmp_path: Path) -> None:
    with Pipeline(tmp_path, embedder=None) as pipeline:
        for number in range(3):
            job = pipeline.ingest(note(f"d{number}", "The sluice opens at six."), background=number > 0)
            pipeline.jobs.wait(job.job_id, 60)
            assert pipeline.jobs.get(job.job_id, LOCAL).status is JobStatus.COMPLETED
        assert (pipeline.jobs._queued, pipeline.jobs._claims) == ({}, {})
        assert list((tmp_path / "jobs").iterdir()) == []


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_name_that_is_taken_anew_gets_nothing_of_the_old_source(tmp_path: Path, *, in_memory: bool) -> None:
    gated = Gated()
    with Pipeline(None if in_memory else tmp_path, embedder=gated) as pipeline:
        old = pipeline.ingest(note("old", "The old sluice opens at six."), "desk", background=True)
        assert gated.reached.wait(30)
        pipeline.delete("desk")
        pipeline.put_source(DataSource(data_source_id="desk", owner_id="other"), OTHER)
        gated.gate.set()
        pipeline.jobs.wait(old.job_id, 60)
        assert pipeline.index.count(Selection("local")) == 0
        assert pipeline.catalog.documents("local", "desk") == []


def test_a_turn_that_cannot_be_judged_is_given_back() -> None:
    lock = threading.Lock()

    def unreadable() -> bool:
        raise IndexUnavailable

    with pytest.raises(IndexUnavailable), Turn(lock, unreadable):
        raise AssertionError
    with pytest.raises(Stopped), Turn(lock, lambda: False):
        raise AssertionError
    with Turn(lock, lambda: True):
        assert lock.locked()
    assert not lock.locked()


def test_a_source_deleted_before_its_job_begins_is_no_completed_job(monkeypatch: pytest.MonkeyPatch) -> None:
    with Pipeline(embedder=None) as pipeline:
        once_after(monkeypatch, pipeline.catalog, "ensure_source", lambda: pipeline.delete("desk"))
        job = pipeline.ingest(note("d", "The sluice opens at six."), "desk")
        assert (job.status, job.reason, job.indexed) == (JobStatus.FAILED, CANCELLED, 0)


def _won(together: threading.Barrier, attempt: Callable[[], object]) -> bool:
    """Try something at the same moment as others, and tell whether it was allowed."""
    together.wait(30)
    try:
        attempt()
    except PermissionDenied:
        return False
    return True


def test_who_makes_a_source_first_says_who_may_see_it(tmp_path: Path) -> None:
    document = note("d", "The sluice opens at six.")
    with (
        Pipeline(tmp_path, embedder=None) as one,
        Pipeline(tmp_path, embedder=None) as two,
        ThreadPoolExecutor(3) as pool,
    ):
        for number in range(10):
            hers, his = (
                DataSource(data_source_id=f"desk{number}", owner_id=owner, visibility=Visibility.PERSONAL)
                for owner in ("ann", "bob")
            )
            attempts = (
                partial(one.put_source, hers, User(user_id="ann")),
                partial(two.put_source, his, User(user_id="bob")),
                partial(one.ingest, document, f"desk{number}"),
            )
            together = threading.Barrier(len(attempts))
            won = [done.result() for done in [pool.submit(_won, together, attempt) for attempt in attempts]]
            assert won.count(True) == 1
            known = one.catalog.source("local", f"desk{number}")
            assert known is not None
            assert known.owner_id == ("ann", "bob", "local")[won.index(True)]


def test_closing_lets_a_job_in_the_background_be_taken_up_again(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(f"The sluice {name} opens at six.", encoding="utf-8")
    gated = Gated()
    pipeline = Pipeline(tmp_path / "home", embedder=gated)
    job = pipeline.ingest(folder, background=True)
    assert gated.reached.wait(30)
    threading.Timer(0.2, gated.gate.set).start()
    pipeline.close()
    assert not any(thread.name == "spanforge-ingest" for thread in threading.enumerate())
    with Pipeline(tmp_path / "home", embedder=gated) as again:
        (ended,) = again.jobs.resume(LOCAL)
        assert (ended.job_id, ended.status, ended.indexed) == (job.job_id, JobStatus.COMPLETED, 2)


class _Round:
    """What one thread does with a pipeline that others use too, and what it must find."""

    def __init__(self, pipeline: Pipeline, name: str) -> None:
        self._pipeline = pipeline
        self._name = name
        self._source = f"{name}-desk"

    def run(self) -> None:
        for number in range(ROUNDS):
            word = f"{self._name}{number}"
            notes = [note("same", "The keeper stays."), note("new", f"The {word} is red.")]
            job = self._pipeline.ingest(notes, self._source)
            assert (job.status, job.indexed) == (JobStatus.COMPLETED, 2)
            assert job.unchanged == int(number > 0)
            assert self._found(word) == {"new"}
            assert self._pipeline.ask(f"What colour is the {word}?", data_sources=[self._source]).session_id
            assert self._pipeline.jobs.resume(LOCAL) == []
            if number:
                assert "new" not in self._found(f"{self._name}{number - 1}")
        assert self._pipeline.delete(self._source) == 2
        assert self._source not in {source.data_source_id for source in self._pipeline.sources()}

    def _found(self, word: str) -> set[str]:
        try:
            found = self._pipeline.retrieve(word, data_sources=[self._source]).documents
        except NoResults:
            return set()
        return {one.document_id for one in found if word in one.text.split()}


@pytest.mark.slow
@pytest.mark.parametrize("homes", ["memory", "one pipeline", "two pipelines"])
def test_many_threads_come_and_go(tmp_path: Path, homes: str) -> None:
    home = None if homes == "memory" else tmp_path
    pipelines = [Pipeline(home, embedder=None) for _ in range(2 if homes == "two pipelines" else 1)]
    rounds = [_Round(pipelines[i % len(pipelines)], f"w{i}") for i in range(4)]
    with ThreadPoolExecutor(len(rounds)) as pool:
        for done in [pool.submit(one.run) for one in rounds]:
            done.result()
    assert pipelines[0].index.count(Selection("local")) == 0
    for pipeline in pipelines:
        pipeline.close()
