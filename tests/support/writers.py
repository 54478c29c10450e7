"""What writing processes run: in a module of its own, because a process that is spawned imports it by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.stored import events

from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink


class Together:
    """Stands where a barrier may: its parties do not wait for each other."""

    def wait(self) -> None:
        """Go on at once."""


def write_batches(path: Path, worker: int, barrier: Any, options: dict[str, Any]) -> None:
    """Write 1,000 events numbered from `worker * 10_000`, in batches of 1 to 8."""
    sink, start = JsonlSink(path, **options), 0
    barrier.wait()
    while start < 1000:
        size = min(1 + start % 8, 1000 - start)
        sink.write(events(size, worker * 10_000 + start))
        start += size
    sink.close()


def write_while_followed(path: Path, worker: int) -> None:
    """Write 300 events, three at a time, to a file that is rotated often."""
    sink = JsonlSink(path, max_bytes=5000)
    for start in range(0, 300, 3):
        sink.write(events(3, worker * 1000 + start))


def write_rows(path: Path, worker: int, barrier: Any) -> None:
    """Write 100 events to a database."""
    sink = SqliteSink(path)
    barrier.wait()
    for batch in range(10):
        sink.write(events(10, worker * 1000 + batch * 10))
    sink.close()
