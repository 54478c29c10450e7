"""A thousand files of every format, some of them broken: each is indexed or reported, also after the run is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from support import documents

from spanforge.reference import Pipeline
from spanforge.reference.index import Selection
from spanforge.reference.models import JobStatus

FILES = 1_000
BROKEN = {
    "encrypted.pdf": documents.pdf(["secret"], encrypted=True),
    "cut.pdf": documents.pdf(["cut"])[:200],
    "scanned.pdf": documents.pdf([""]),
    "not-a-zip.docx": b"plain text",
    "broken.jsonl": b'{"text": ',
    "blank.md": b"  \n",
    "picture.bin": bytes(range(256)),
}
INGEST = """
import sys
from spanforge.reference import Pipeline, User
if __name__ == "__main__":
    pipeline = Pipeline(sys.argv[1])
    print("ready", flush=True)
    list(pipeline.jobs.resume(User()))
    pipeline.ingest(sys.argv[2])
    print("done", flush=True)
"""


def _content(kind: str, number: int) -> bytes:
    """One good file that says something no other says."""
    text = f"Barge {number} carries {number * 7} crates past the sluice of harbour {number % 13}."
    if kind == "pdf":
        return documents.pdf([text, f"Page two of log {number}."])
    if kind == "docx":
        return documents.word([text], [["barge", "crates"], [str(number), str(number * 7)]], heading=f"Log {number}")
    return {
        "md": f"# Log {number}\n\n{text}\n",
        "txt": f"{text}\n",
        "html": f"<html><body><article><h1>Log {number}</h1><p>{text} {documents.WORDS}</p></article></body></html>",
        "csv": f"barge,crates\n{number},{number * 7}\n",
        "tsv": f"barge\tcrates\n{number}\t{number * 7}\n",
        "jsonl": json.dumps({"text": text}) + "\n",
    }[kind].encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("thousand")
    kinds = ("md", "txt", "html", "csv", "tsv", "jsonl", "pdf", "docx")
    for number in range(FILES - len(BROKEN)):
        kind = kinds[number % len(kinds)]
        place = root / f"part{number % 10}"
        place.mkdir(exist_ok=True)
        (place / f"log{number}.{kind}").write_bytes(_content(kind, number))
    for name, content in BROKEN.items():
        (root / name).write_bytes(content)
    return root


def _run(home: Path, folder: Path, script: Path) -> subprocess.Popen[str]:
    script.write_text(INGEST, encoding="utf-8")
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin", "SPANFORGE_SANDBOX": "1"}
    return subprocess.Popen(
        [sys.executable, str(script), str(home), str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_file_is_indexed_or_reported(tmp_path: Path, folder: Path) -> None:
    with Pipeline(tmp_path / "home") as pipeline:
        job = pipeline.ingest(folder)
        assert job.status is JobStatus.COMPLETED
        assert job.total == FILES
        assert job.indexed == FILES - len(BROKEN)
        assert len(job.failures) == len(BROKEN)
        codes = Counter(failure.code for failure in job.failures)
        assert set(codes) == {"PARSE_ERROR", "UNSUPPORTED_FORMAT"}
        found = pipeline.retrieve("How many crates does barge 501 carry?", top_k=5).documents
        assert any("Barge 501 carries 3507 crates" in document.text for document in found)
        again = pipeline.ingest(folder)
        assert again.unchanged == again.indexed == job.indexed


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a POSIX signal")
def test_killed_on_the_way_the_next_run_finishes_with_no_chunk_twice(tmp_path: Path, folder: Path) -> None:
    with Pipeline(tmp_path / "whole") as pipeline:
        pipeline.ingest(folder)
        expected = pipeline.index.count(Selection("local", ("default",)))
    for seconds in (0.5, 2.0, 5.0):
        process = _run(tmp_path / "home", folder, tmp_path / "ingest.py")
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    out, _ = _run(tmp_path / "home", folder, tmp_path / "ingest.py").communicate(timeout=300)
    assert out.endswith("done\n")
    with Pipeline(tmp_path / "home") as pipeline:
        assert pipeline.index.count(Selection("local", ("default",))) == expected
