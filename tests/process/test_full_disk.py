"""A full disk costs what has no room in memory either, and that is counted; then the file goes on, whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.processes import run

from spanforge.reader import read_events

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits of file size and tmpfs are POSIX")

SCRIPT = """\
import json, os, resource, sys
from spanforge.sdk import configure, sf_rag
from support.workload import one_session

def full(on):
    {full}

file = sys.argv[1]
configure(sinks=f"jsonl:{{file}}", max_attempts=2, backoff_s=0.001, max_backoff_s=0.05, batch_delay_s=0.001,
          queue_events=1_000)
one_session("before")
sf_rag.flush(10)
full(True)
for _ in range(400): one_session()
sf_rag.flush(1)
full(False)
for _ in range(50):
    # The first write after a failure is a probe: it may be the one that finds room.
    one_session("after")
    if sf_rag.flush(20) == 0 and not sf_rag.get_status().sinks["jsonl:events.jsonl"].pending: break
print(json.dumps(sf_rag.get_status().sinks["jsonl:events.jsonl"].to_dict()))
"""

BY_LIMIT = (
    "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000 if on else resource.RLIM_INFINITY, resource.RLIM_INFINITY))"
)
BY_BALLAST = """
    if on:
        ballast = os.open(os.path.dirname(file) + "/ballast", os.O_WRONLY | os.O_CREAT)
        try:
            while True: os.write(ballast, b"0" * 4096)
        except OSError: os.close(ballast)
    else: os.remove(os.path.dirname(file) + "/ballast")
"""


def prove(tmp_path: Path, folder: Path, full: str) -> None:
    file = folder / "events.jsonl"
    done = run(SCRIPT.format(full=full), tmp_path, str(file))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1, "the sink's trouble is logged once"
    ledger = json.loads(done.stdout)
    assert ledger["last_error"] in {"EFBIG", "ENOSPC", "short write"}
    lost = ledger["dropped"]["queue_full"]
    assert ledger["accepted"] == ledger["delivered"] + lost
    assert (ledger["failed"], ledger["pending"]) == (0, 0)
    events = list(read_events(file))
    assert len({event.event_id for event in events}) == len(events) == ledger["delivered"]
    assert {"before", "after"} <= {event.session_id for event in events}
    assert file.read_bytes().endswith(b"\n")


def test_a_limit_of_the_file_size(tmp_path):
    prove(tmp_path, tmp_path, BY_LIMIT)


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None or subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=False, capture_output=True
    ).returncode:  # fmt: skip
        pytest.skip("mounting a small tmpfs needs privileges this environment does not give")
    yield folder
    subprocess.run([umount, str(folder)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path, small_disk):
    prove(tmp_path, small_disk, BY_BALLAST)
