"""Documents that are small to keep and ruinous to read are refused and cost little; reading can be called off."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from support import bombs, tasks
from support.documents import pdf, word

from spanforge.reference import Document, Pipeline, User
from spanforge.reference.failures import ParseError
from spanforge.reference.models import JobStatus
from spanforge.reference.parsing import parse
from spanforge.reference.workers import WORKERS, CalledOff, Limits, Workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL = Limits(memory=192 << 20, seconds=3.0)
"""Limits that ordinary documents keep to, and that bombs reach soon."""
KIBIBYTES = 768
_LOCAL = User()
SLUICE = "The sluice opens at six."


def _document(content: bytes, name: str = "a.pdf") -> Document:
    return Document(document_id=name, content=content, name=name)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.docx", bombs.big_docx),
        ("a.docx", bombs.lying_docx),
        ("a.docx", bombs.padded_docx),
        ("a.pdf", bombs.pdf_stream_bomb),
        ("a.pdf", bombs.pdf_object_bomb),
        ("a.html", bombs.deep_html),
        *(("a.pdf", lambda one=one: one.make(KIBIBYTES)) for one in bombs.WRAPPED_PDFS),
    ],
)
def test_what_would_hurt_is_refused(name: str, make: Callable[[], bytes]) -> None:
    with pytest.raises(ParseError):
        parse(_document(make(), name), SMALL)
    # Whatever became of the child: the next document is read.
    assert parse(_document(pdf([SLUICE])), SMALL).sections[0].text == SLUICE


@pytest.mark.slow
def test_a_folder_with_bombs_in_it_is_read_but_for_them(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(SLUICE, encoding="utf-8")
    (tmp_path / "good.docx").write_bytes(word([SLUICE]))
    (tmp_path / "good.pdf").write_bytes(pdf([SLUICE]))
    (tmp_path / "bad.docx").write_bytes(bombs.big_docx())
    (tmp_path / "bad.html").write_bytes(bombs.deep_html())
    (tmp_path / "bad.pdf").write_bytes(bombs.pdf_stream_bomb())
    with Pipeline(embedder=None, limits=SMALL) as pipeline:
        job = pipeline.ingest(tmp_path)
        assert (job.status, job.indexed) == (JobStatus.COMPLETED, 3)
        assert {failure.code for failure in job.failures} == {"PARSE_ERROR"}
        assert len(job.failures) == 3
        assert {one.source for one in pipeline.retrieve("sluice").documents} == {"good.md", "good.docx", "good.pdf"}


# --- the child ---


def _run(task: Callable[..., Any], content: bytes = b"", workers: Workers = WORKERS, **arguments: Any) -> Any:
    stop = arguments.pop("stop", lambda: False)
    return workers.run(f"{task.__module__}:{task.__name__}", content, arguments, SMALL, stop)


@pytest.mark.parametrize("task", [tasks.spin, tasks.hoard, tasks.crash])
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and processor time are the system's")
def test_a_task_that_costs_too_much_is_refused_and_the_next_one_is_done(task: Callable[..., Any]) -> None:
    with pytest.raises(ParseError, match="far more to read"):
        _run(task)
    assert _run(tasks.shout, b"abc", word="next")[:2] == ["next", 3]


def test_a_child_is_kept_warm_and_ends_with_its_keeper() -> None:
    workers = Workers()
    first, again = (_run(tasks.shout, workers=workers, word="x")[2] for _ in range(2))
    assert first == again != os.getpid()
    workers.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_a_task_is_called_off_in_the_middle() -> None:
    asked = threading.Event()

    def stop() -> bool:
        asked.set()
        return True

    with pytest.raises(CalledOff):
        _run(tasks.spin, stop=stop)
    assert asked.is_set()


def test_a_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    """Children of `multiprocessing` run the main module once more, which would ingest without end."""
    script = tmp_path / "script.py"
    script.write_text(
        "from spanforge.reference import Document\n"
        "from spanforge.reference.parsing import parse\n"
        "print(parse(Document(document_id='d', text='Once.', name='a.txt')).sections[0].text)\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["Once."]


def test_cancelling_a_job_ends_the_document_at_hand(tmp_path: Path) -> None:
    """A table of a million rows is cut for a minute; nobody waits for it."""
    (tmp_path / "long.csv").write_bytes(b"place,hour\n" + b"".join(b"gate %d,%d\n" % (i, i) for i in range(1_000_000)))
    with Pipeline(tmp_path / "home", embedder=None) as pipeline:
        job = pipeline.ingest(tmp_path / "long.csv", background=True)
        while pipeline.jobs.get(job.job_id, _LOCAL).status is JobStatus.QUEUED:
            time.sleep(0.01)
        pipeline.jobs.cancel(job.job_id, _LOCAL)
        pipeline.jobs.wait(job.job_id, 30)
        assert pipeline.jobs.get(job.job_id, _LOCAL).reason == "CANCELLED"
        assert not pipeline.catalog.documents("local", "default")
