"""`spanforge serve` in a process of its own, with keys. Its log goes to a file: a pipe nobody reads would stop it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from support.api import bearer
from support.processes import environment
from support.serving import port_of, told

from spanforge.reference import User
from spanforge.server.auth.keys import KEYS_FILE, KeyStore

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

UNLIMITED = {
    "SPANFORGE_SERVER_REQUESTS_PER_MINUTE": "10000000",
    "SPANFORGE_SERVER_BURST": "1000000",
    "SPANFORGE_SERVER_WRONG_CREDENTIALS_PER_MINUTE": "1000000",
}
"""Rates have tests of their own."""


@dataclass
class Besieged:
    """A running server.

    Attributes:
        said: What it printed after it had started, once it has ended.
    """

    home: Path
    process: subprocess.Popen[str]
    port: int
    said: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.home / "log").read_text(encoding="utf-8")

    def key(self, user: str, org: str, roles: Iterable[str] = ("editor",)) -> dict[str, str]:
        return key(self.home, user, org, roles)

    def client(self, headers: dict[str, str]) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def resident_kib(self) -> int:
        """Memory of the server's process (Linux)."""
        return self._kib("VmRSS:")

    def peak_kib(self) -> int:
        """The most memory that the server's process had so far (Linux)."""
        return self._kib("VmHWM:")

    def _kib(self, name: str) -> int:
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:  # noqa: PTH123  a file of the kernel
            return next(int(line.split()[1]) for line in status if line.startswith(name))

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End the server with a signal; what it had to say is in `said`."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.said += self.process.communicate(timeout=60)[0]


def key(home: Path, user: str, org: str, roles: Iterable[str] = ("editor",)) -> dict[str, str]:
    """Make a key in a server's folder and return the header that carries it."""
    home.mkdir(exist_ok=True)
    keys = KeyStore(home / KEYS_FILE)
    try:
        return bearer(keys.add(User(user_id=user, org_id=org, roles=frozenset(roles))))
    finally:
        keys.close()


def start(home: Path, **extra: str) -> Besieged:
    """Start a server over a folder."""
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-W", "error", "-m", "spanforge", "serve", "--port", "0", "--home", str(home)]
    with (home / "log").open("a") as log:
        process = subprocess.Popen(
            command,
            env=environment(**{**UNLIMITED, **extra}),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            encoding="utf-8",
        )
    return Besieged(home, process, _port(process))


def _port(process: subprocess.Popen[str]) -> int:
    try:
        return port_of(told(process, "folder"))
    except BaseException:
        process.kill()
        process.communicate()
        raise


@contextmanager
def besieged(home: Path, **extra: str) -> Generator[Besieged]:
    """Serve a folder for the length of a block."""
    server = start(home, **extra)
    try:
        yield server
    finally:
        server.stop()


def ended(client: httpx.Client, job_id: str, patience_s: float = 90.0) -> dict[str, Any]:
    """Wait for the end of a job."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        job = client.get(f"/api/rag/ingest/{job_id}").json()
        if job["status"] in {"completed", "failed"}:
            return job
        time.sleep(0.05)
    raise AssertionError("the job did not end")
