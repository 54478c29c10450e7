"""`spanforge watch` as a process: what a rule fired for before a signal is delivered, and the exit code says so."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from subprocess import Popen

import pytest
from support import processes
from support.stored import START_NS, event

from spanforge import _clock
from spanforge.namespaces.event import Event

_CLI = "import sys; from spanforge.cli import main; sys.exit(main(sys.argv[1:]))"
_POLICY = '[[watch]]\nfield = "generation_count"\nbelow = 1\nwindow = "1s"\n'
_SLOW = "import sys, time; time.sleep(0.1); open('called', 'a').write(sys.stdin.read())"

Watching = Callable[[str], Popen[str]]


@pytest.fixture
def watching(tmp_path: Path) -> Generator[Watching]:
    """Start a watch of a file that is not there yet, which calls a program for each escalation."""
    started: list[Popen[str]] = []

    def start(program: str) -> Popen[str]:
        (tmp_path / "policy.toml").write_text(_POLICY)
        (tmp_path / "call.py").write_text(program)
        command = f"{processes.sys.executable} call.py"
        options = ("--policy", "policy.toml", "--command", command)
        process = processes.start(_CLI, tmp_path, "watch", "events.jsonl", *options, SPANFORGE_SINKS="jsonl:out.jsonl")
        started.append(process)
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting for events.jsonl\n"
        return process

    yield start
    for process in started:
        processes.end(process)


def endings(sessions: int) -> bytes:
    """Return the summaries of sessions that end ten seconds apart, in which nobody was answered."""
    told: list[Event] = []
    for number in range(sessions):
        one = event(number, session_id=f"s{number}", event_type="llm.rag.session")
        at = _clock.timestamp(START_NS + number * 10_000_000_000)
        told.append(replace(one, timestamp=at, payload={"session_id": one.session_id, "retriever_name": "r"}))
    return b"".join(one.encode() + b"\n" for one in told)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_fired_before_a_signal_is_delivered(watching: Watching, tmp_path: Path, number: signal.Signals) -> None:
    process = watching(_SLOW)
    (tmp_path / "events.jsonl").write_bytes(endings(8))
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(8)]
    process.send_signal(number)
    assert process.wait(30) == 0
    assert all("s" + str(place) in line for place, line in enumerate(told))
    assert len((tmp_path / "called").read_text().splitlines()) == 8


def test_what_cannot_be_delivered_is_told_by_the_exit_code(watching: Watching, tmp_path: Path) -> None:
    process = watching("raise SystemExit(3)")
    (tmp_path / "events.jsonl").write_bytes(endings(1))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 1
