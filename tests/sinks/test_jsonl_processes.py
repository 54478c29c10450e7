"""The jsonl sink among real processes: many on one file, killed, out of space, forked."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.stored import events, numbers, strict_lines
from support.writers import Together, write_batches

from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.chain import verify_lines
from spanforge.reader import read_events
from spanforge.sinks._lock import held
from spanforge.sinks.jsonl import JsonlSink

KEY = b"k" * 32
METHODS = [name for name in ("fork", "spawn") if name in multiprocessing.get_all_start_methods()]

needs_posix = pytest.mark.skipif(os.name != "posix", reason="signals, forks and limits are POSIX")


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (METHODS[0], {}),
        (METHODS[0], {"max_bytes": 30_000}),
        (METHODS[0], {"max_age_s": 0.05, "fsync": "interval", "fsync_interval_s": 0.01}),
        (METHODS[0], {"max_bytes": 30_000, "chain": True, "signing_key": KEY}),
    ],
    ids=["one-file", "rotated", "rotated-by-age", "rotated-signed"],
)
def test_eight_processes_on_one_file(tmp_path: Path, method: str, options: dict[str, Any]) -> None:
    context = multiprocessing.get_context(method)
    path, barrier = tmp_path / "events.jsonl", context.Barrier(8)
    workers = [context.Process(target=write_batches, args=(path, number, barrier, options)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(90)
    assert [worker.exitcode for worker in workers] == [0] * 8

    stored = [line["payload"]["number"] for file in tmp_path.glob("*.jsonl") for line in strict_lines(file)]
    assert Counter(stored) == Counter(worker * 10_000 + number for worker in range(8) for number in range(1000))
    reader = read_events(tmp_path)
    assert sorted(numbers(reader)) == sorted(stored)
    assert not reader.damaged
    if "max_bytes" in options:
        assert len(list(tmp_path.glob("*.jsonl"))) > 20
        assert max(file.stat().st_size for file in tmp_path.glob("*.jsonl")) <= options["max_bytes"]
    if "signing_key" in options:
        for file in tmp_path.glob("*.jsonl"):
            assert verify_lines(file.read_bytes().splitlines(), KEY).ok


def test_a_process_that_is_stopped_in_its_turn_is_not_waited_for_without_end(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "events.jsonl", max_bytes=1_000_000)
    sink.write(events(1))
    with held(tmp_path / "events.jsonl"):
        sink.write(events(1, 1))
    assert numbers(read_events(tmp_path)) == [0, 1]


def test_pruning_among_processes_loses_only_what_was_pruned(tmp_path: Path) -> None:
    context = multiprocessing.get_context(METHODS[0])
    path, barrier = tmp_path / "events.jsonl", context.Barrier(4)
    options = {"max_bytes": 10_000, "keep": 3}
    workers = [context.Process(target=write_batches, args=(path, number, barrier, options)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(90)
    assert [worker.exitcode for worker in workers] == [0] * 4
    files = list(tmp_path.glob("*.jsonl"))
    assert len(files) <= 4
    stored = [line["payload"]["number"] for file in files for line in strict_lines(file)]
    assert len(stored) == len(set(stored))
    assert all(number % 10_000 < 1000 for number in stored)


def run(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, **options
    )


@needs_posix
def test_kill_in_the_middle_of_writing_leaves_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    code = f"""
        import sys
        sys.path.insert(0, "tests")
        from support.stored import events
        from spanforge.sinks.jsonl import JsonlSink
        first, sink = int(sys.argv[1]), JsonlSink({str(path)!r}, chain=True)
        for start in range(first, first + 1_000_000, 200):
            sink.write(events(200, start))
            print(start + 200, flush=True)
    """
    promised: list[tuple[int, int]] = []
    for attempt in range(4):
        first = attempt * 1_000_000
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(first)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout
            writer.stdout.readline()
            time.sleep(0.05 * (attempt + 1))
            writer.send_signal(signal.SIGKILL)
            acknowledged = [line for line in writer.stdout.read().splitlines() if line]
        promised.append((first, int(acknowledged[-1]) if acknowledged else first + 200))
    JsonlSink(path).write(events(1, 9_000_000))
    reader = read_events(path)
    stored = set(numbers(reader))
    for first, until in promised:
        assert stored >= set(range(first, until))
    assert 9_000_000 in stored
    assert reader.damaged.total() <= len(promised)


@needs_posix
def test_a_writer_killed_among_others_costs_them_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    context = multiprocessing.get_context("fork")
    options = {"max_bytes": 50_000}
    # No barrier: one that the killed process waits at would keep the others for ever.
    workers = [context.Process(target=write_batches, args=(path, number, Together(), options)) for number in range(4)]
    for worker in workers:
        worker.start()
    time.sleep(0.05)
    os.kill(workers[0].pid or 0, signal.SIGKILL)
    for worker in workers:
        worker.join(90)
    assert [worker.exitcode for worker in workers[1:]] == [0] * 3
    stored = set(numbers(read_events(tmp_path)))
    assert stored >= {worker * 10_000 + number for worker in (1, 2, 3) for number in range(1000)}


FULL = """
    import sys
    sys.path.insert(0, "tests")
    from support.stored import events
    from spanforge.exceptions import SinkWriteError
    from spanforge.sinks.jsonl import JsonlSink

    def fill(sink, first, last):
        "Write with retries that never help; return what was not delivered."
        left, start = [], first
        while start < last:
            try:
                sink.write(events(20, start))
            except SinkWriteError as error:
                assert error.retryable, error
                assert error.reason in ("EFBIG", "ENOSPC", "short write"), error.reason
                left.append((start + error.delivered, start + 20))
            start += 20
        return left
"""


def drained(path: Path, count: int) -> None:
    reader = read_events(path, unique=True)
    assert numbers(reader) != []
    assert sorted(numbers(read_events(path, unique=True))) == list(range(count))
    whole = JsonlSink(path)
    whole.write(events(1, count))
    whole.close()
    tail = path.read_bytes().splitlines()[-1]
    assert tail == events(1, count)[0].encode()


@needs_posix
@pytest.mark.parametrize("limit", [10_000, 20_001, 33_333])
@pytest.mark.parametrize("chain", [False, True])
def test_a_limit_on_the_file_costs_counted_events_and_is_mended(tmp_path: Path, limit: int, chain: bool) -> None:
    path = tmp_path / "events.jsonl"
    code = (
        textwrap.dedent(FULL)
        + f"""
import resource
sink = JsonlSink({str(path)!r}, chain={chain})
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, limits[1]))
left = fill(sink, 0, 400)
assert left
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
for first, last in left:
    sink.write(events(last - first, first))
sink.close()
"""
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
    reader = read_events(path)
    assert sorted(numbers(reader)) == list(range(400)), "each once, none lost"
    assert reader.damaged.total() <= 1
    if chain:
        assert verify_lines(path.read_bytes().splitlines(), skip_unreadable=True).ok
    drained(path, 400)


@needs_posix
@pytest.mark.slow
def test_a_full_disk_costs_counted_events_and_the_file_is_whole_when_space_returns(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["/usr/bin/mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs rights that this run does not have")
    try:
        path, ballast = disk / "events.jsonl", disk / "ballast"
        ballast.write_bytes(b"x" * 150_000)
        code = textwrap.dedent(FULL) + textwrap.dedent(
            f"""
            import os
            sink = JsonlSink({str(path)!r}, max_bytes=1_000_000)
            left = fill(sink, 0, 600)
            assert left
            os.unlink({str(ballast)!r})
            for first, last in left:
                sink.write(events(last - first, first))
            sink.close()
            """
        )
        done = run(code)
        assert done.returncode == 0, done.stderr
        reader = read_events(path)
        assert sorted(numbers(reader)) == list(range(600))
        assert reader.damaged.total() <= 5
        drained(path, 600)
    finally:
        subprocess.run(["/usr/bin/umount", str(disk)], check=True)


@needs_posix
def test_two_processes_out_of_space_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    code = (
        textwrap.dedent(FULL)
        + f"""
import resource, json
sink, first = JsonlSink({str(path)!r}), int(sys.argv[1])
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
left = fill(sink, first, first + 400)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
for start, last in left:
    sink.write(events(last - start, start))
"""
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(first)], stderr=subprocess.PIPE, text=True)
        for first in (0, 10_000)
    ]
    for writer in writers:
        _, problem = writer.communicate(timeout=60)
        assert writer.returncode == 0, problem
    stored = numbers(read_events(path, unique=True))
    assert sorted(stored) == [*range(400), *range(10_000, 10_400)]


@needs_posix
def test_a_fork_in_use_writes_on_as_two(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonlSink(path, signing_key=KEY, max_bytes=20_000)
    sink.write(events(10))
    pid = os.fork()
    if not pid:
        sink.after_fork()
        for start in range(1000, 1500, 5):
            sink.write(events(5, start))
        os._exit(0)
    for start in range(2000, 2500, 5):
        sink.write(events(5, start))
    assert os.waitpid(pid, 0)[1] == 0
    sink.close()
    assert sorted(numbers(read_events(tmp_path))) == [*range(10), *range(1000, 1500), *range(2000, 2500)]
    for file in tmp_path.glob("*.jsonl"):
        assert verify_lines(file.read_bytes().splitlines(), KEY).ok


def test_nothing_of_the_events_is_in_an_error(tmp_path: Path) -> None:
    with pytest.raises(SinkWriteError) as caught:
        JsonlSink(tmp_path).write(events(1, note="canary-7f3a"))
    assert "canary" not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"
