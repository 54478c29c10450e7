"""A stderr that nobody reads: no call waits for it, and neither does the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.pipes import full_pipe
from support.processes import environment

SCRIPT = """
import logging, sys
import structlog
from spanforge.sdk import configure, sf_rag

{configured}
for _ in range(50):
    sf_rag.end_session(sf_rag.trace_query("q", top_k=0))
sf_rag.trace_retrieval("s", [{{"id": 1}}])
sf_rag.flush(0.2)
configure(sinks=["memory"])
sys.stdout.write("done")
"""
CONFIGURED = {
    "nothing configured": "",
    "logging": "logging.basicConfig()",
    "structlog over logging": (
        "logging.basicConfig(level='DEBUG')\n"
        "structlog.configure(logger_factory=structlog.stdlib.LoggerFactory(),"
        " processors=[structlog.processors.JSONRenderer()])"
    ),
    "structlog that prints": (
        "structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr),"
        " processors=[structlog.processors.JSONRenderer()])"
    ),
}


@pytest.mark.skipif(os.name == "nt", reason="pipes cannot be asked there")
@pytest.mark.parametrize("configured", CONFIGURED)
def test_a_stderr_that_nobody_reads_holds_nothing_up(configured: str, tmp_path):
    reader, writer = full_pipe()
    script = SCRIPT.format(configured=CONFIGURED[configured])
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=writer,
            timeout=30,
            check=False,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert (done.returncode, done.stdout) == (0, b"done")


def test_a_handler_that_hangs_holds_nothing_up(tmp_path):
    script = """
import logging, threading
from spanforge.sdk import sf_rag

class Hanging(logging.Handler):
    def emit(self, record):
        threading.Event().wait()

logging.getLogger().addHandler(Hanging())
for _ in range(3):
    sf_rag.end_session(sf_rag.trace_query("q", top_k=0))
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"done\n")
