"""Many processes on one jsonl file: no bad line, nothing lost, nothing twice."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.processes import assert_exactly_once, succeed

SCRIPT = """\
import sys
from spanforge.sdk import configure, sf_rag
from support.workload import one_session

configure(sinks="jsonl:../events.jsonl", batch_delay_s=0.001, batch_events=16)
for n in range(int(sys.argv[1])):
    one_session()
    # A burst without end would outrun the file, and the queue would drop what it may.
    if n % 500 == 0: assert sf_rag.flush(60) == 0
"""


@pytest.mark.parametrize("sessions", [150, pytest.param(5_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_eight_processes_on_one_file(tmp_path: Path, sessions):
    folders = [tmp_path / str(n) for n in range(8)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda folder: succeed(SCRIPT, folder, str(sessions), timeout=600, SPANFORGE_EXIT_TIMEOUT_S="300"),
                folders,
            )
        )
    assert_exactly_once(tmp_path / "events.jsonl", 8 * sessions)
    assert sys.platform == "win32" or (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600
