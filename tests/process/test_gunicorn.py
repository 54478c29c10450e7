"""A preloading server: the application is imported and used before gunicorn forks its workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from support.processes import assert_exactly_once, environment

pytest.importorskip("gunicorn", reason="gunicorn is not installed on this platform")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="gunicorn needs fork")

APP = """\
from spanforge.sdk import configure, sf_rag
from support.workload import one_session

configure(sinks="jsonl:events.jsonl")
one_session("preload")

def app(environ, start_response):
    session = one_session()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{session} {__import__('os').getpid()}".encode()]
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _get(port: int) -> tuple[str, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        session, pid = answer.read().decode().split()
        return session, pid


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("gunicorn did not start")


@pytest.mark.parametrize("how", [[], ["--threads", "4"]], ids=["sync", "threads"])
def test_every_event_of_four_preloaded_workers_arrives_once(tmp_path, how):
    (tmp_path / "app.py").write_text(APP)
    port = _free_port()
    command = [sys.executable, "-m", "gunicorn", "--preload", "-w", "4", *how, "-b", f"127.0.0.1:{port}", "app:app"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=tmp_path, env=environment(HOME=str(tmp_path)), stdout=log, stderr=log)
    try:
        _wait_for(port, server)
        answers = [_get(port) for _ in range(100)]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    assert "Traceback" not in (tmp_path / "log").read_text()
    events = assert_exactly_once(tmp_path / "events.jsonl", 101)
    assert {event["session_id"] for event in events} == {"preload", *(session for session, _ in answers)}
