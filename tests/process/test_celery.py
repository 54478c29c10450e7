"""Celery's pool: children that leave by `os._exit`, the moment after their task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from support.processes import environment, stored
from support.workload import EVENTS

pytest.importorskip("celery", reason="celery is not installed on this platform")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the pool needs fork")

APP = """\
from celery import Celery
from spanforge.sdk import configure, sf_rag
from support.workload import one_session

configure(sinks="jsonl:events.jsonl")
one_session("in-the-parent")
app = Celery("app", broker="filesystem://", broker_transport_options={
    "data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control",
})

@app.task
def whole():
    one_session()

@app.task
def left_open():
    sf_rag.trace_query("q", session_id="left-open")
"""
SEND = """\
from app import left_open, whole
from spanforge.sdk import sf_rag

sf_rag.configure(sinks="memory")
left_open.delay()
for _ in range(3): whole.delay()
"""
WORKER = ["-m", "celery", "-A", "app", "worker", "-P", "prefork", "-l", "info", "--without-gossip", "--without-mingle"]


@pytest.mark.parametrize(
    "children", [["--max-tasks-per-child=1"], pytest.param([], marks=pytest.mark.slow)], ids=["one task each", "kept"]
)
def test_every_event_of_every_child_arrives_once(tmp_path, children):
    (tmp_path / "queue").mkdir()
    (tmp_path / "app.py").write_text(APP)
    kept = environment(HOME=str(tmp_path))
    subprocess.run([sys.executable, "-c", SEND], cwd=tmp_path, env=kept, check=True, timeout=60)
    (tmp_path / "events.jsonl").unlink()
    log = tmp_path / "log"
    with log.open("wb") as file:
        worker = subprocess.Popen(
            [sys.executable, *WORKER, "-c", "2", *children], cwd=tmp_path, env=kept, stdout=file, stderr=file
        )
    try:
        deadline = time.monotonic() + 60
        while log.read_bytes().count(b"succeeded") < 4 and time.monotonic() < deadline and worker.poll() is None:
            time.sleep(0.05)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(30)
    events = stored(tmp_path / "events.jsonl")
    assert len({event["event_id"] for event in events}) == len(events) == EVENTS * 4 + 2, log.read_text()
    _, end = [event for event in events if event["session_id"] == "left-open"]
    assert end["payload"]["end_reason"] == "process_exit"
