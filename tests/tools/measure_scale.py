"""What reading stored events costs at any size: `python tests/tools/measure_scale.py FOLDER EVENTS...`.

Writes a log of each size, has a process of its own read it in each way, and prints CPU time, time and peak memory.
Copies of one block of sessions differ in their ids alone: so ten million events are written fast.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from shutil import rmtree

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.many_sessions import EVENTS_EACH, many_events

_BLOCK = 10_000
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ADDED = 10_000
WAYS = ("whole events", "stream", "bulk", "bulk, 10,000 more", "report")


def write_log(path: Path, events: int) -> int:
    """Write about as many events; return how many."""
    block = b"".join(event.encode() + b"\n" for event in many_events(_BLOCK))
    copies = max(1, round(events / (_BLOCK * EVENTS_EACH)))
    with path.open("wb") as file:
        for copy in range(copies):
            file.write(block.replace(b'"01KD', f'"01{_DIGITS[copy // 32]}{_DIGITS[copy % 32]}'.encode()))
    return copies * _BLOCK * EVENTS_EACH


def read(way: str, log: Path) -> None:
    """Read a log in one way, and print seconds of CPU, seconds and peak memory in MB."""
    # Each way loads what it needs and no more, for its memory is measured.
    if way == "whole events":
        from support.whole_events import held_sessions

        work = lambda: held_sessions(log)  # noqa: E731
    elif way == "stream":
        from spanforge.analysis import SessionFolder
        from spanforge.reader import read_records

        def work() -> object:
            folder = SessionFolder()
            folder.add_all(read_records(log))
            return sum(1 for session in folder.sessions() if session.summary)
    elif way == "report":
        from spanforge.viewer import Filter, report

        work = lambda: report(log, Filter())  # noqa: E731
    else:
        from spanforge.analysis.engines import connect
        from spanforge.analysis.index import Index

        kept = log.parent / "index"
        work = lambda: Index(log, kept, connect(scratch=kept)).refresh()  # noqa: E731
        kept.mkdir(exist_ok=True)
    started, clock = time.process_time(), time.perf_counter()
    work()
    print(time.process_time() - started, time.perf_counter() - clock, _peak_mb())  # noqa: T201  it is what is asked for


def _peak_mb() -> float:
    # Not ru_maxrss, which begins at what the parent had when it forked.
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def measure(folder: Path, events: int, ways: tuple[str, ...]) -> None:
    """Measure every way at one size."""
    folder.mkdir()
    try:
        log = folder / "events.jsonl"
        count = write_log(log, events)
        for way in ways:
            if way == WAYS[3]:
                with log.open("ab") as file:
                    more = many_events(_ADDED // EVENTS_EACH, first=_BLOCK)
                    file.writelines(event.encode() + b"\n" for event in more)
            command = [sys.executable, __file__, way, str(log)]
            child = subprocess.run(command, capture_output=True, text=True, check=True)
            cpu, wall, memory = map(float, child.stdout.split())
            each = f"{cpu:8.1f} s CPU {cpu / count * 1e6:6.2f} µs each"
            print(f"{count:>10,} {way:<18} {each} {wall:8.1f} s {memory:6,.0f} MB", flush=True)  # noqa: T201  as above
    finally:
        rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1] in WAYS:
        read(sys.argv[1], Path(sys.argv[2]))
    elif sys.argv[1] == "write":
        print(write_log(Path(sys.argv[2]), int(sys.argv[3])))  # noqa: T201  it is what is asked for
    else:
        for size in map(int, sys.argv[2:]):
            # Whole events take kilobytes each, and the stream a CPU second for every sixty thousand.
            ways = WAYS if size < 1_000_000 else WAYS[1:] if size < 5_000_000 else WAYS[2:]
            measure(Path(sys.argv[1]) / f"scale-{size}", size, ways)
