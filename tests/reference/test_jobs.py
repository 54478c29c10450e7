"""Jobs: followed, cancelled, killed, resumed, two at once; and deleted text gone from the files."""

from __future__ import annotations

import random
import secrets
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from spanforge.reference import DataSource, Document, Pipeline, User
from spanforge.reference.failures import IndexUnavailable, InvalidInput
from spanforge.reference.index import Selection
from spanforge.reference.index.lance import MAX_WORD_INDEXES
from spanforge.reference.ingesting.run import CANCELLED, INTERRUPTED
from spanforge.reference.models import JobStatus

LOCAL = User()
INGEST = textwrap.dedent(
    """
    import sys
    from spanforge.reference import Pipeline
    import spanforge.reference.ingesting.ingestor as ingestion
    ingestion.BATCH_DOCUMENTS = 8
    if __name__ == "__main__":
        pipeline = Pipeline(sys.argv[1])
        print("ready", flush=True)
        for job in pipeline.jobs.resume(__import__("spanforge.reference").reference.User()):
            print("resumed", job.status.value, flush=True)
        job = pipeline.ingest(sys.argv[2])
        print("done", job.indexed, job.status.value, flush=True)
    """
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(60):
        (root / f"note{i:02}.md").write_text(f"# Note {i}\n\nNote number {i} tells of barge {i}.\n", encoding="utf-8")
    return root


def start(tmp_path: Path, home: Path, folder: Path) -> subprocess.Popen[str]:
    script = tmp_path / "ingest.py"
    script.write_text(INGEST, encoding="utf-8")
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-W", "error", str(script), str(home), str(folder)]
    environment = {"PYTHONPATH": root, "PATH": "/usr/bin:/bin", "SPANFORGE_SANDBOX": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def state(home: Path) -> tuple[int, int, int]:
    """Return the passages in the index, the documents in the catalogue, and the passages found one by one."""
    with Pipeline(home) as pipeline:
        documents = len(pipeline.catalog.documents("local", "default"))
        chunks = pipeline.index.count(Selection("local", ("default",)))
        return chunks, documents, len(pipeline.retrieve("note number tells of barge", top_k=1000).documents)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a POSIX signal")
def test_killed_at_any_moment_the_next_run_finishes_with_no_chunk_twice(tmp_path: Path, folder: Path) -> None:
    generator = random.Random(7)  # noqa: S311 - a repeatable draw, nothing secret
    for attempt in range(6):
        home = tmp_path / f"home{attempt}"
        process = start(tmp_path, home, folder)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(generator.uniform(0.0, 1.2))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        again = start(tmp_path, home, folder)
        out, _ = again.communicate(timeout=100)
        assert "done 60 completed" in out
        assert state(home) == (60, 60, 60)


@pytest.mark.slow
def test_two_processes_ingest_at_once_with_no_chunk_twice(tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    processes = [start(tmp_path, home, folder) for _ in range(2)]
    outputs = [process.communicate(timeout=100)[0] for process in processes]
    assert all("done 60 completed" in out for out in outputs), outputs
    assert state(home) == (60, 60, 60)


def test_a_job_whose_process_died_is_taken_up_again(tmp_path: Path, folder: Path) -> None:
    cut = {"chunk_size": 512, "chunk_overlap": 50}
    with Pipeline(tmp_path / "home") as dying:
        dying.put_source(DataSource(data_source_id="default"))
        job = dying.jobs.create([folder], LOCAL, "default", cut)
        documents = dying.jobs.create([Document(document_id="d", text="x")], LOCAL, "default", cut)
        for one in (job, documents):
            dying.jobs._let_go(one.job_id)  # as a process's end does
    with Pipeline(tmp_path / "home") as pipeline:
        ended = {done.job_id: done for done in pipeline.jobs.resume(LOCAL)}
        assert (ended[job.job_id].status, ended[job.job_id].indexed) == (JobStatus.COMPLETED, 60)
        assert (ended[documents.job_id].status, ended[documents.job_id].reason) == (JobStatus.FAILED, INTERRUPTED)
        assert pipeline.jobs.resume(LOCAL) == []
        assert pipeline.jobs.resume(User(user_id="other")) == []


def test_a_job_that_lives_is_left_alone(tmp_path: Path, folder: Path) -> None:
    with Pipeline(tmp_path / "home") as pipeline, Pipeline(tmp_path / "home") as other:
        seen: list[int] = []

        def report(_: object) -> None:
            if not seen:
                seen.append(len(other.jobs.resume(LOCAL)))

        assert pipeline.ingest(folder, report=report).status is JobStatus.COMPLETED
        assert seen == [0]


def test_a_cancelled_job_ends_failed_and_leaves_nothing_half_indexed(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path / "home")
    pipeline.put_source(DataSource(data_source_id="default"))
    documents = [
        Document(document_id=f"d{i}", text="\n\n".join(f"Paragraph {j} of {i}." for j in range(60))) for i in range(40)
    ]
    started = threading.Event()
    job = pipeline.jobs.create(documents, LOCAL, "default", {"chunk_size": 64, "chunk_overlap": 0})

    def report(now) -> None:  # type: ignore[no-untyped-def]
        if len(now.failures) == 0 and not started.is_set():
            started.set()
            pipeline.jobs.cancel(job.job_id, LOCAL)

    ended = pipeline.jobs.run(job.job_id, report)
    assert ended is not None
    assert (ended.status, ended.reason) == (JobStatus.FAILED, CANCELLED)
    assert ended.indexed < 40
    for record in pipeline.catalog.documents("local", "default"):
        selection = Selection("local", ("default",), document_ids=(record.document_id,))
        assert pipeline.index.count(selection) == record.chunks
    assert len(pipeline.catalog.documents("local", "default")) == ended.indexed
    total = sum(record.chunks for record in pipeline.catalog.documents("local", "default"))
    assert pipeline.index.count(Selection("local")) == total
    pipeline.close()


def test_a_job_in_the_background_can_be_followed(folder: Path) -> None:
    with Pipeline() as pipeline:
        job = pipeline.ingest(folder, background=True)
        progress = [pipeline.jobs.get(job.job_id, LOCAL).progress]
        pipeline.jobs.wait(job.job_id, 60)
        progress.append(pipeline.jobs.get(job.job_id, LOCAL).progress)
        assert progress[0] <= progress[1] == 1.0


def test_deleted_text_is_gone_from_the_files(tmp_path: Path) -> None:
    canary, kept, only = (secrets.token_hex(24) for _ in range(3))
    home = tmp_path / "home"

    def in_files(text: str) -> bool:
        return any(text.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())

    with Pipeline(home) as pipeline:
        pipeline.ingest(Document(document_id="o", text=f"only {only}"), "first")
        assert in_files(only)
        assert pipeline.delete("first") == 1
        assert not in_files(only)
        pipeline.ingest(Document(document_id="k", text=f"kept {kept}"), "open")
        pipeline.ingest([Document(document_id=f"s{i}", text=f"secret {canary} {i}") for i in range(3)], "secret")
        assert in_files(canary)
        assert pipeline.delete("secret") == 3
        assert not in_files(canary)
        assert in_files(kept)
        pipeline.ingest(Document(document_id="k", text="replaced"), "open")
        assert not in_files(kept)


def test_the_jobs_of_a_deleted_source_go_with_it_and_one_at_work_leaves_nothing(folder: Path) -> None:
    with Pipeline() as pipeline:
        done = pipeline.ingest(Document(document_id="k", text="kept"), "kept")
        gone = pipeline.ingest(Document(document_id="d", text="first"), "doomed")

        def report(_: object) -> None:
            if any(source.data_source_id == "doomed" for source in pipeline.sources()):
                pipeline.delete("doomed")

        ended = pipeline.ingest(folder, "doomed", report=report)
        assert (ended.status, ended.reason, ended.indexed) == (JobStatus.FAILED, CANCELLED, 0)
        assert pipeline.jobs.get(done.job_id, LOCAL).status is JobStatus.COMPLETED
        for job in (gone, ended):
            with pytest.raises(InvalidInput):
                pipeline.jobs.get(job.job_id, LOCAL)
        assert pipeline.index.count(Selection("local", ("doomed",))) == 0
        assert pipeline.jobs.resume(LOCAL) == []


def test_text_deleted_by_a_process_that_died_is_gone_after_the_next_run(tmp_path: Path) -> None:
    canary = secrets.token_hex(24)
    home = tmp_path / "home"
    with Pipeline(home) as pipeline:
        pipeline.ingest([Document(document_id=f"d{i}", text=f"{canary if i else 'kept'} {i}") for i in range(3)])
        pipeline.index.delete(Selection("local", document_ids=("d1", "d2")))  # and no more: it dies here
    assert any(canary.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())
    with Pipeline(home) as pipeline:
        pipeline.ingest(Document(document_id="new", text="Something else."))
        assert pipeline.index.count(Selection("local")) == 2
    assert not any(canary.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_small_additions_do_not_pile_up_files_and_word_indexes(tmp_path: Path) -> None:
    with Pipeline(tmp_path / "home", embedder=None) as pipeline:
        for i in range(3 * MAX_WORD_INDEXES):
            pipeline.ingest(Document(document_id=f"d{i}", text=f"Note {i}."))
            folders = list((tmp_path / "home").rglob("_indices/*"))
            assert 1 <= len(folders) <= MAX_WORD_INDEXES + 2
        assert len(pipeline.retrieve("note", top_k=100).documents) == 3 * MAX_WORD_INDEXES


def test_an_index_written_by_a_newer_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    Pipeline(tmp_path / "home").close()
    database = sqlite3.connect(tmp_path / "home" / "catalog.sqlite")
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(IndexUnavailable, match="newer version"):
        Pipeline(tmp_path / "home")


def test_an_index_made_with_another_embedder_is_refused(tmp_path: Path) -> None:
    Pipeline(tmp_path / "home", embedder=None).close()
    with pytest.raises(IndexUnavailable, match="another embedding model"):
        Pipeline(tmp_path / "home", embedder="wordllama")
    assert Pipeline(tmp_path / "home").embedder is None


def test_a_folder_that_cannot_be_made_is_index_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(IndexUnavailable):
        Pipeline(tmp_path / "file" / "home")


def test_a_damaged_catalogue_is_index_unavailable(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "catalog.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(IndexUnavailable) as caught:
        Pipeline(tmp_path / "home")
    assert caught.value.__context__ is None
