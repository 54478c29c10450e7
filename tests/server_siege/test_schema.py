"""The OpenAPI document keeps its word: schemathesis calls a running server with all its checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.besieged import besieged
from support.processes import environment

SEED = "1"


def _run(tmp_path: Path, *options: str) -> None:
    with besieged(tmp_path / "home") as server:
        credential = server.key("ann", "north", ["admin", "metrics"])["Authorization"]
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
        command += ["--header", f"Authorization: {credential}", "--checks", "all", "--seed", SEED, "--no-color"]
        done = subprocess.run(
            [*command, *options],
            check=False,
            cwd=tmp_path,
            env=environment(SCHEMATHESIS_HOOKS="support.schema_hooks"),
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
        assert "Tested: 11" in done.stdout, done.stdout[-2_000:]


@pytest.mark.slow
def test_a_short_run(tmp_path: Path) -> None:
    _run(tmp_path, "--phases", "examples,fuzzing,stateful", "--max-examples", "4", "--no-shrink")


@pytest.mark.slow
@pytest.mark.timeout(1_000)
def test_a_long_run(tmp_path: Path) -> None:
    _run(tmp_path, "--max-examples", "15")
