"""Nothing is lost sight of: folders that cannot be read, links in a circle, processes that die between two writes."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.documents import notes

from spanforge.cli import main
from spanforge.reference import Document, Pipeline, User
from spanforge.reference.index import Selection
from spanforge.reference.ingesting.catalog import UNFINISHED
from spanforge.reference.ingesting.loading import folders, waiting

LOCAL = User()
ALL = Selection("local")
posix = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and SIGKILL are those of POSIX")
KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from spanforge.reference import Pipeline
    from spanforge.reference.index.lance import LanceIndex
    from spanforge.reference.ingesting.catalog import Catalog

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    pipeline = Pipeline(sys.argv[1], embedder=None)
    setattr(LanceIndex if hasattr(LanceIndex, sys.argv[3]) else Catalog, sys.argv[3], die)
    if sys.argv[4] == "ingest":
        pipeline.ingest(sys.argv[2])
    else:
        pipeline.delete("default")
    """
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return notes(tmp_path)


@posix
def test_links_in_a_circle_or_to_nothing_are_left_out(folder: Path, tmp_path: Path) -> None:
    for name, target in {"self": "self", "one": "two", "two": "one", "none": "nowhere", "round": "."}.items():
        (folder / name).symlink_to(target)
    assert [Path(one.document_id).name for one in waiting([folder])] == ["gate.md", "lift.md"]
    home = str(tmp_path / "home")
    assert main(["ingest", str(folder), "--home", home]) == 0
    assert main(["forget", str(folder / "self"), "--home", home]) == 2


@posix
def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.txt")
    with Pipeline(embedder=None) as pipeline:
        assert pipeline.ingest(folder).total == 2
        (failure,) = pipeline.ingest([folder / "pipe.txt"]).failures
    assert failure.code == "PARSE_ERROR"


@pytest.fixture
def lock_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Whoever runs the tests may be one whom no permission stops."""
    scandir: Callable[..., Any] = os.scandir

    def lock(folder: Path) -> None:
        def refused(path: str) -> Any:
            if Path(path) == folder:
                raise PermissionError(errno.EACCES, "no", str(folder))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refused)

    yield lock
    monkeypatch.undo()


@pytest.mark.parametrize("locked", ["", "deep"])
def test_what_a_folder_holds_that_cannot_be_listed_is_kept(
    folder: Path, locked: str, lock_folder: Callable[[Path], None]
) -> None:
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(folder)
        lock_folder(folder / locked)
        job = pipeline.ingest(folder)
        assert (job.removed, len(pipeline.documents())) == (0, 2)
        (failure,) = job.failures
        assert failure.document_id == (folder / locked).resolve().as_posix()
        assert "permissions" in failure.message


def test_a_file_that_may_not_be_looked_at_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Path.stat

    def refused(self: Path, **how: Any) -> os.stat_result:
        if self.name == "lift.md":
            raise PermissionError(errno.EACCES, "no", str(self))
        return look(self, **how)

    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(folder)
        monkeypatch.setattr(Path, "stat", refused)
        job = pipeline.ingest(folder)
        assert (job.removed, [Path(one.document_id).name for one in job.failures]) == (0, ["lift.md"])


def _nothing(*_: object) -> None:
    """What a process does that dies at once."""


def test_a_job_taken_up_again_forgets_nothing_of_a_folder_that_is_away(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pipeline(tmp_path / "home", embedder=None) as pipeline:
        pipeline.ingest(folder)
        monkeypatch.setattr(pipeline.jobs, "run", _nothing)
        pipeline.ingest(folder)
    folder.rename(tmp_path / "away")
    with Pipeline(tmp_path / "home", embedder=None) as pipeline:
        (job,) = pipeline.jobs.resume(LOCAL)
        assert (job.removed, len(pipeline.documents())) == (0, 2)


def test_what_came_while_a_folder_was_ingested_is_kept(folder: Path) -> None:
    with Pipeline(embedder=None) as pipeline:

        def another_ingests(_: object) -> None:
            late = folder / "late.md"
            if not late.exists():
                late.write_text("The quay is long.", encoding="utf-8")
                pipeline.ingest(late)

        assert pipeline.ingest(folder, report=another_ingests).removed == 0
        assert len(pipeline.documents()) == 3


@posix
def test_a_folder_that_became_a_link_is_gone_from_where_it_was(folder: Path, tmp_path: Path) -> None:
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(folder)
        (folder / "deep").rename(tmp_path / "deep")
        (folder / "deep").symlink_to(tmp_path / "deep")
        assert pipeline.ingest(folder).removed == 1


def test_a_hidden_file_that_was_named_is_kept(folder: Path) -> None:
    hidden = folder / ".plan.md"
    hidden.write_text("The quay is long.", encoding="utf-8")
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(hidden)
        assert pipeline.ingest(folder).removed == 0
        hidden.unlink()
        assert pipeline.ingest(folder).removed == 1


def test_an_index_is_not_read_into_itself(folder: Path) -> None:
    home = folder / "spanforge-index"
    for _ in ("first", "unchanged"):
        assert main(["ingest", str(folder), "--home", str(home)]) == 0
        with Pipeline(home) as pipeline:
            assert len(pipeline.documents()) == 2
    # Nor by whoever takes up a job of it.
    assert len(waiting([folder, home], home)) == 2


def test_a_folder_that_became_a_file_is_gone(folder: Path) -> None:
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(folder)
        (folder / "deep" / "lift.md").unlink()
        (folder / "deep").rmdir()
        (folder / "deep").write_bytes(b"\0\0\0")
        job = pipeline.ingest(folder)
        assert (job.indexed, len(job.failures), job.removed) == (1, 1, 1)


@posix
def test_ids_of_long_paths_differ_and_begin_with_those_of_their_folders(folder: Path) -> None:
    long = folder.joinpath(*["n" * 200] * 3)
    long.mkdir(parents=True)
    for side in ("a", "b"):
        (long / f"{side}.md").write_text(f"The crane of side {side}.", encoding="utf-8")
    names = [one.document_id for one in waiting([folder])]
    assert len(set(names)) == 4
    assert all(len(name) <= 512 and name.startswith(tuple(folders([folder]))) for name in names)
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(folder)
        (long / "a.md").unlink()
        assert pipeline.ingest(folder).removed == 1


def test_a_file_that_can_be_read_no_more_says_that_what_was_read_stays(folder: Path) -> None:
    with Pipeline(embedder=None) as pipeline:
        pipeline.ingest(folder)
        (folder / "gate.md").write_bytes(b"\0\0\0")
        (folder / "new.md").write_bytes(b"\0\0\0")
        said = {Path(one.document_id).name: one.message for one in pipeline.ingest(folder).failures}
        assert said["gate.md"] == f"{said['new.md']} What was read of it before stays in the index."
        assert pipeline.ask("When does the gate close?").answer == "20:45 [1]"


def _killed(home: Path, folder: Path, at: str, verb: str = "ingest") -> None:
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin", "SPANFORGE_SANDBOX": "1"}
    command = [sys.executable, "-W", "error", "-c", KILLED, str(home), str(folder), at, verb]
    assert subprocess.run(command, check=False, env=environment, capture_output=True).returncode == -signal.SIGKILL


@posix
@pytest.mark.parametrize("at", ["upsert", "delete"])
def test_what_a_killed_process_wrote_of_a_file_that_is_gone_is_forgotten(folder: Path, tmp_path: Path, at: str) -> None:
    home = tmp_path / "home"
    _killed(home, folder, at)
    with Pipeline(home, embedder=None) as pipeline:
        assert {one.warning for one in pipeline.documents()} == {UNFINISHED}
        (folder / "gate.md").unlink()
        pipeline.jobs.resume(LOCAL)
        (left,) = pipeline.documents()
        assert (Path(left.document_id).name, left.warning) == ("lift.md", "")
        assert pipeline.index.count(ALL) == left.chunks == 1


@posix
def test_a_file_that_came_back_after_a_kill_is_read_again(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Pipeline(home, embedder=None) as pipeline:
        pipeline.ingest(folder)
    (folder / "gate.md").rename(tmp_path / "gate.md")
    _killed(home, folder, "drop_documents")
    (tmp_path / "gate.md").rename(folder / "gate.md")
    with Pipeline(home, embedder=None) as pipeline:
        pipeline.jobs.resume(LOCAL)
        assert sum(one.chunks for one in pipeline.documents()) == pipeline.index.count(ALL) == 2


@posix
def test_a_source_whose_deletion_was_killed_can_be_deleted_again(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Pipeline(home, embedder=None) as pipeline:
        pipeline.ingest(folder)
    _killed(home, folder, "delete", "delete")
    with Pipeline(home, embedder=None) as pipeline:
        assert {one.warning for one in pipeline.documents()} == {UNFINISHED}
        assert pipeline.delete("default") == 2
        assert pipeline.sources() == []
        # Whoever takes the name next finds nothing of the old one.
        pipeline.ingest(Document(document_id="d", text="The quay is long."))
        assert pipeline.index.count(ALL) == 1


def test_names_are_listed_as_they_are_and_forgotten_by_their_paths(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = ["notes/[red]a.md", "notes/ä b.md"]
    if sys.platform == "linux":
        odd.append(os.fsdecode(b"notes/\xff.md"))
    for name in odd:
        Path(name).write_text("The crane lifts.", encoding="utf-8")
    assert main(["ingest", "notes", "--home", "home"]) == 0
    assert f"{len(odd) + 2} of {len(odd) + 2} documents found are in the index" in capsys.readouterr().out
    assert main(["documents", "--home", "home"]) == 0
    assert "notes/[red]a.md" in capsys.readouterr().out
    assert main(["forget", *odd, "--home", "home", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"documents": len(odd), "passages": len(odd)}
    assert main(["forget", tmp_path.anchor, "--home", "home"]) == 0
    assert "2 documents" in capsys.readouterr().out
