"""The OpenAPI document keeps its word: schemathesis calls a running server with all its checks."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.besieged import besieged, ended
from support.processes import environment
from support.schema_hooks import CALLS, DOCUMENT, JOB, RUN, SOURCE, TEXT

from spanforge.server.auth.permissions import TABLE

SEED = "1"
OPERATIONS = {f"{method} {path}" for method, path in TABLE if path not in {"/openapi.json", "/docs"}}
# Every check is on unless told otherwise; "--checks all" would overrule what is told here.
CONFIG = """
# To delete a job is to cancel it: it is followed afterwards all the same.
[[operations]]
include-path = "/api/rag/ingest/{jobId}"
checks.use_after_free.enabled = false
"""


def _run(tmp_path: Path, *options: str) -> None:
    with besieged(tmp_path / "home") as server:
        credential = server.key("ann", "north", ["admin", "metrics"])["Authorization"]
        with server.client({"Authorization": credential}) as client:
            source = client.post("/api/rag/sources", json={"name": "Notes"}).json()["id"]
            documents = [{"documentId": DOCUMENT, "text": TEXT}]
            job = client.post("/api/rag/ingest", json={"dataSourceId": source, "documents": documents}).json()["jobId"]
            ended(client, job)
            asked = client.post("/api/rag/query", json={"query": "How many days of leave are there?"})
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
        command += ["--header", f"Authorization: {credential}", "--seed", SEED, "--no-color"]
        (tmp_path / "schemathesis.toml").write_text(CONFIG, encoding="utf-8")
        done = subprocess.run(
            [*command, *options],
            check=False,
            cwd=tmp_path,
            env=environment(
                SCHEMATHESIS_HOOKS="support.schema_hooks",
                **{CALLS: str(tmp_path / "calls"), SOURCE: source, JOB: job, RUN: asked.headers["X-Spanforge-Session"]},
            ),
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
        assert f"Tested: {len(OPERATIONS)}" in done.stdout, done.stdout[-2_000:]
    _assert_reached(tmp_path / "calls")


def _assert_reached(calls: Path) -> None:
    """Every operation got through to what it does, not only to a refusal."""
    reached: Counter[str] = Counter()
    for line in calls.read_text(encoding="utf-8").splitlines():
        operation, _, status = line.rpartition(" ")
        reached[operation] += status.startswith("2")
    print("\n" + "\n".join(f"{times:6} x 2xx  {name}" for name, times in sorted(reached.items())))  # noqa: T201  shown
    assert {name for name, times in reached.items() if times} == OPERATIONS


@pytest.mark.slow
def test_a_short_run(tmp_path: Path) -> None:
    _run(tmp_path, "--phases", "examples,fuzzing,stateful", "--max-examples", "4", "--no-shrink")


@pytest.mark.slow
@pytest.mark.timeout(1_000)
def test_a_long_run(tmp_path: Path) -> None:
    _run(tmp_path, "--max-examples", "15")
