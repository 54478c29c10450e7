"""`spanforge ui`, as a person starts it."""

# ruff: noqa: S310  every address is one that the command printed

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support.many_sessions import fill

_UI = [sys.executable, "-W", "error", "-m", "spanforge", "ui"]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}


def test_it_serves_this_machine_alone_until_interrupted(tmp_path: Path) -> None:
    fill(tmp_path / "events.db", 3)
    running = subprocess.Popen(
        [*_UI, "events.db", "--port", "0"], cwd=tmp_path, env=_environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        line = running.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
        with urllib.request.urlopen(address) as answer:
            page = answer.read().decode()
            assert "server" not in {name.lower() for name in answer.headers}
        assert page.count('role="rowheader"') == 3
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(urllib.request.Request(address, headers={"Host": "evil.example"}))
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=30)
    assert not list(tmp_path.glob("spanforge-viewer-*"))


def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = subprocess.run(
            [*_UI, "events.db", "--port", str(taken.getsockname()[1])],
            cwd=tmp_path, env=_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "--port: this port is taken" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_extra_there_is_one_sentence(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['starlette'] = None\n"
        "try:\n    import spanforge.viewer\n"
        "except ImportError as error:\n    print(error, error.__context__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "The viewer needs the 'ui' extra: pip install 'spanforge[ui]' None"
