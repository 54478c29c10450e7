"""Servers that bind more than the loopback, in a network namespace of their own with nothing but the loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]


def lacking() -> str:
    """Return what keeps servers from being isolated here; empty where nothing does."""
    for command in ("unshare", "nsenter", "ip"):
        if shutil.which(command) is None:
            return f"the command {command} is missing"
    return "" if os.geteuid() == 0 else "network namespaces need root"


def receiver(name: str) -> str:
    """Return the path of a receiver's command, or skip: it is not installed, or cannot be isolated, here.

    Receivers have virtual environments of their own, so that their pins do not decide ours, under the folder
    that RECEIVERS names.
    """
    folder = os.environ.get("RECEIVERS", "")
    path = Path(folder) / name / "bin" / name
    if not folder or not path.exists():
        pytest.skip(f"{name} is not installed under the folder that RECEIVERS names; .ci/run installs it")
    if reason := lacking():
        pytest.skip(reason)
    return str(path)


class Isolated:
    """A server in its namespace."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def run(self, *command: str, timeout: float = 120) -> str:
        """Run a command beside the server and return what it prints."""
        inside = ["nsenter", "--target", str(self.pid), "--net", *command]
        path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
        done = subprocess.run(
            inside, capture_output=True, text=True, check=False, timeout=timeout, env={**os.environ, "PYTHONPATH": path}
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *arguments: str) -> Any:
        """Run `receiver_client` beside the server and return the JSON it prints."""
        return json.loads(self.run(sys.executable, str(TESTS / "support" / "receiver_client.py"), *arguments))


@contextmanager
def isolated(command: list[str], ready: str, log: Path, environment: Mapping[str, str]) -> Iterator[Isolated]:
    """Run a server in a namespace of its own, and wait until it answers at the URL `ready`."""
    script = 'ip link set lo up && exec "$@"'
    with log.open("wb") as output:
        server = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", script, "sh", *command],  # noqa: S607  where it is differs between systems
            stdout=output,
            stderr=output,
            env={**os.environ, **environment},
        )
        try:
            _wait(server, ready, log)
            yield Isolated(server.pid)
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait(server: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    probe = f"import urllib.request; urllib.request.urlopen({ready!r}, timeout=5).read()"
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text(errors="replace")[-2000:]
        inside = ["nsenter", "--target", str(server.pid), "--net", sys.executable, "-c", probe]
        if subprocess.run(inside, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(1)
    raise AssertionError(log.read_text(errors="replace")[-2000:])
