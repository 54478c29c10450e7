"""What reading stored events costs, beside whole events that are all held, in one run; and what it takes of memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest
from support.many_sessions import EVENTS_EACH, many_events
from support.measuring import show
from support.whole_events import held_sessions

from spanforge.analysis import SessionFolder
from spanforge.analysis.engines import connect
from spanforge.analysis.index import Index
from spanforge.reader import read_records

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

_SESSIONS = 12_000
_EVENTS = _SESSIONS * EVENTS_EACH
_FEW, _MANY, _ADDED = 400_000, 2_000_000, 10_000
_SCALE = Path(__file__).parents[1] / "tools" / "measure_scale.py"
_ROUNDS = 4
"""Each way in turn; the least of each counts, for what a neighbour on the machine adds is none of its cost."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    with path.open("wb") as file:
        file.writelines(event.encode() + b"\n" for event in many_events(_SESSIONS))
    return path


def _held(log: Path) -> None:
    assert len(held_sessions(log)) == _SESSIONS


def _streamed(log: Path) -> None:
    folder = SessionFolder()
    folder.add_all(read_records(log))
    assert sum(1 for session in folder.sessions() if session.summary) == _SESSIONS


def _in_bulk(log: Path, folder: Path) -> Index:
    index = Index(log, folder, connect(scratch=folder))
    index.refresh()
    return index


def _cpu_s(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _start_s(folder: Path) -> float:
    """Return what the bulk engine costs before the first event: what is measured is small, and it is for what is large.

    An index of few events, built and read once before, so that nothing is imported any more.
    """
    few = folder / "few.jsonl"
    few.write_bytes(b"".join(event.encode() + b"\n" for event in many_events(1)))
    return min(_cpu_s(lambda: _in_bulk(few, Path(mkdtemp(dir=folder)))) for _ in range(_ROUNDS))


def test_the_stream_and_the_bulk_cost_a_part_of_whole_events(log: Path, tmp_path: Path) -> None:
    def bulk_once(path: Path) -> None:
        _in_bulk(path, Path(mkdtemp(dir=tmp_path)))

    start = _start_s(tmp_path)
    works = (_held, _streamed, bulk_once)
    costs = [[_cpu_s(partial(work, log)) for work in works] for _ in range(_ROUNDS)]
    held, streamed, bulk = (min(side) * 1e6 / _EVENTS for side in zip(*costs, strict=True))
    bulk -= start * 1e6 / _EVENTS
    show(
        f"CPU an event, in microseconds; the start of the bulk engine, {start:.2f} s, apart",
        ("whole events", "stream", "bulk", "stream / whole", "bulk / whole"),
        [(held, streamed, bulk, streamed / held, bulk / held)],
    )
    assert streamed <= held / 3
    assert bulk <= held / 4


def _measured(way: str, log: Path) -> tuple[float, float]:
    """Read a log in a process of its own; return seconds of CPU and peak memory in MB."""
    child = subprocess.run([sys.executable, _SCALE, way, str(log)], capture_output=True, text=True, check=True)
    cpu, _, memory = map(float, child.stdout.split()[-3:])
    return cpu, memory


def _written(folder: Path, events: int) -> tuple[Path, int]:
    folder.mkdir()
    child = subprocess.run(
        [sys.executable, _SCALE, "write", str(folder / "events.jsonl"), str(events)],
        capture_output=True,
        text=True,
        check=True,
    )
    return folder / "events.jsonl", int(child.stdout)


def test_neither_memory_nor_cost_grows_with_the_log_and_what_it_grows_by_is_read_alone(tmp_path: Path) -> None:
    few, fewer = _written(tmp_path / "few", _FEW)
    small, _ = _measured("bulk", few)
    many, more = _written(tmp_path / "many", _MANY)
    large, bulk_mb = _measured("bulk", many)
    _, stream_mb = _measured("stream", many)
    with many.open("ab") as file:
        file.writelines(event.encode() + b"\n" for event in many_events(_ADDED // EVENTS_EACH, first=_SESSIONS))
    added, _ = _measured("bulk, 10,000 more", many)
    ratio = (large / more) / (small / fewer)
    show(
        f"{more:,} events beside {fewer:,}, and {_ADDED:,} added to them, the bulk engine's start in all",
        ("stream, MB", "bulk, MB", "bulk, cost of an event, ratio", "added / built"),
        [(stream_mb, bulk_mb, ratio, added / large)],
    )
    assert stream_mb <= 300
    assert bulk_mb <= 3_000
    assert ratio <= 1.3
    assert added <= large / 15
