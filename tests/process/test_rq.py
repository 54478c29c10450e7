"""A session goes along to a job of RQ, whose worker forks for each and leaves it without Python's own exit."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spanforge.sdk import configure, sf_rag
from spanforge.sdk.propagation import inject

rq = pytest.importorskip("rq", reason="RQ is not installed")
redis = pytest.importorskip("redis", reason="the client of Redis, without which RQ does nothing")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
]
REDIS = shutil.which("redis-server") or ""

JOBS = """
from rq import get_current_job

from spanforge.sdk import sf_rag
from spanforge.sdk.propagation import extract


def search(question):
    with sf_rag.attach(extract(get_current_job().meta)), sf_rag.retrieval() as retrieval:
        retrieval.record([{"chunk_id": "17", "score": 0.9, "source": "s"}])
"""


WORKER = """
import rq, redis
{first}
connection = redis.Redis(unix_socket_path="redis.sock")
rq.Worker([rq.Queue(connection=connection)], connection=connection).work(burst=True)
"""


def answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


CONFIGURED = "from spanforge.sdk import configure; configure()"


@pytest.mark.parametrize("first", ["", CONFIGURED], ids=["first used in the child", "configured in the worker"])
def test_a_session_goes_along_to_a_job(first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANFORGE_SINKS", "jsonl:events.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    configure()
    server = subprocess.Popen([REDIS, "--port", "0", "--unixsocket", "redis.sock", "--save", ""])
    try:
        deadline = time.monotonic() + 30
        while not answers("redis.sock") and time.monotonic() < deadline:
            time.sleep(0.05)
        with sf_rag.session("What is due on Friday?") as session:
            carried: dict[str, str] = {}
            inject(carried)
            connection = redis.Redis(unix_socket_path="redis.sock")
            rq.Queue(connection=connection).enqueue("jobs.search", "What is due on Friday?", meta=carried)
            worker = [sys.executable, "-c", WORKER.format(first=first)]
            done = subprocess.run(worker, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert sf_rag.flush().pending == 0
    finally:
        server.terminate()
        server.wait(30)
    told = [json.loads(line) for line in Path("events.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [event["payload"] for event in told if event["event_type"] == "llm.rag.retrieved"]
    assert [(one["session_id"], one["chunks"][0]["chunk_id"]) for one in found] == [(session.session_id, "17")], (
        done.stderr
    )
