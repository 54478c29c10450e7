"""Run scripts in a Python process of their own, and read what arrived."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import Any

from support.workload import EVENTS

import spanforge

_PATHS = (str(Path(spanforge.__file__).parent.parent), str(Path(__file__).parent.parent))


def environment(**extra: str) -> dict[str, str]:
    """The environment of a script: what tests import, it can import."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPANFORGE_", "COV_CORE"))}
    return {**inherited, "PYTHONPATH": os.pathsep.join(_PATHS), "PYTHONFAULTHANDLER": "1", **extra}


def start(script: str, folder: Path, *arguments: str, **extra: str) -> subprocess.Popen[str]:
    """Start a script in `folder` and leave it running; standard output and error are pipes.

    Leaving may take long where others keep the processors busy: tests of what it takes set their own limit.
    """
    file = folder / "script.py"
    file.write_text(dedent(script))
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(file), *arguments],
        cwd=folder,
        env=environment(**{"SPANFORGE_EXIT_TIMEOUT_S": "30", **extra}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=hasattr(os, "setsid"),
    )


def end(process: subprocess.Popen[str]) -> None:
    """Kill a script and the children it left behind."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.communicate()


def run(
    script: str, folder: Path, *arguments: str, timeout: float = 60, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end.

    Raises:
        subprocess.TimeoutExpired: It did not end.
    """
    process = start(script, folder, *arguments, **extra)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        if process.poll() is None:
            end(process)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def succeed(script: str, folder: Path, *arguments: str, timeout: float = 60, **extra: str) -> str:
    """Run a script that must end well and in silence; return what it printed."""
    done = run(script, folder, *arguments, timeout=timeout, **extra)
    assert (done.returncode, done.stderr) == (0, ""), f"ended with {done.returncode}\n{done.stderr}"
    return done.stdout


def stored(path: Path) -> list[dict[str, Any]]:
    """Every line of a jsonl file; each must be whole and strict JSON."""
    data = path.read_bytes() if path.exists() else b""
    assert not data or data.endswith(b"\n"), "the last line is torn"
    return [json.loads(line) for line in data.splitlines()]


def assert_exactly_once(path: Path, sessions: int) -> list[dict[str, Any]]:
    """The file holds every event of so many sessions, none twice; returns the events."""
    events = stored(path)
    assert len({event["event_id"] for event in events}) == len(events), "an event arrived twice"
    counts = Counter(event["session_id"] for event in events)
    assert set(counts.values()) <= {EVENTS}, "a session is not whole"
    assert len(counts) == sessions
    return events
