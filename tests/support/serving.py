"""`spanforge serve` as it is, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from support.processes import environment

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


def start(*arguments: str, **extra: str) -> subprocess.Popen[str]:
    """Start a server; what it says of itself comes on standard output, its log on standard error."""
    command = [sys.executable, "-W", "error", "-m", "spanforge", "serve", "--port", "0", *arguments]
    return subprocess.Popen(
        command, env=environment(**extra), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def told(server: subprocess.Popen[str], until: str) -> dict[str, str]:
    """Read what a server says of itself up to a line, by the first word of each line."""
    found: dict[str, str] = {}
    assert server.stdout is not None
    for line in server.stdout:
        name, _, text = line.strip().partition("  ")
        found[name] = text
        if name == until:
            return found
    assert server.stderr is not None
    raise AssertionError(server.stderr.read())


def port_of(found: dict[str, str]) -> int:
    return int(found["API"].rpartition(":")[2].partition("/")[0])


@contextmanager
def serving(home: Path, **extra: str) -> Generator[int]:
    """Serve a folder for the length of a block; give the port."""
    server = start("--home", str(home), **extra)
    try:
        yield port_of(told(server, "folder"))
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)
