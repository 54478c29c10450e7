"""What `from spanforge.sdk import sf_rag` costs, beside what its three dependencies cost anybody."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

import pytest
from support.measuring import BLOCKS, show
from support.processes import environment

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.name == "nt", reason="needs rusage"),
]

OURS = "from spanforge.sdk import sf_rag"
THEIRS = "import structlog, ulid\nfrom pydantic import BaseModel\nclass Model(BaseModel):\n    field: int = 0"


def cpu_seconds(code: str) -> float:
    """Processor time of a fresh interpreter that runs `code`, from its start to its end."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_import():
    pairs = [(cpu_seconds(OURS), cpu_seconds(THEIRS)) for _ in range(BLOCKS + 1)][1:]
    ours, theirs = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(mine / other for mine, other in pairs)
    show(
        "Import",
        ("spanforge.sdk, ms", "its dependencies and one model, ms", "ratio", "promise"),
        [(ours, theirs, ratio, "≤ 1.3")],
    )
    assert ratio <= 1.3
