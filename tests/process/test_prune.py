"""Pruning beside writers, killed at any moment, and on a full disk: nothing that stays is lost."""

from __future__ import annotations

import os

import pytest
from support.processes import run, start

from spanforge import read_events
from spanforge.analysis import PruneSelection, prune

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fork, flock and limits of file size are POSIX")

KILLED = """\
import os, shutil, signal, sys
from pathlib import Path
from spanforge import _clock
from spanforge.analysis import PruneSelection, prune
from spanforge.namespaces.chain import verify_lines
from spanforge.reader import read_events
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink
from support.stored import events

KEY, WANTED = b"k" * 32, PruneSelection(sessions=frozenset({"gone"}))
FILES = "events-20260101T000000.000000Z.jsonl", "events.jsonl", "events.db"
Path("new").mkdir()
for number, name in enumerate(FILES):
    sink = SqliteSink(f"new/{name}") if name.endswith(".db") else JsonlSink(f"new/{name}", signing_key=KEY)
    for part in range(6):
        sink.write(events(3, 100 * number + 3 * part, session_id=("stays", "gone")[part % 2]))
    sink.close()

def afresh():
    shutil.rmtree("now", ignore_errors=True)
    shutil.copytree("new", "now")

def lines_run(at):
    '''Prune, and be killed at the line of code with this number; returns how many there are.'''
    count = 0
    def count_line(frame, event, _):
        nonlocal count
        if event == "line":
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return count_line
    def called(frame, event, _):
        return count_line if any(part in frame.f_code.co_filename for part in OURS) else None
    sys.settrace(called)
    prune("now", WANTED, key=KEY)
    sys.settrace(None)
    return count

OURS = "/analysis/pruning", "/sinks/rewriting", "/sinks/retention", "/sinks/_lock", "/namespaces/tombstones"

def check(at):
    for number, name in enumerate(FILES):
        path = Path("now", name)
        left = [event.payload["number"] % 100 for event in read_events(path)]
        stays = [n for n in range(18) if n // 3 % 2 == 0]
        gone = 0
        if path.suffix == ".jsonl":
            verdict = verify_lines(path.read_bytes().splitlines(), KEY)
            assert verdict.ok, (at, name, verdict)
            gone = verdict.pruned
            assert len(left) + gone == 18, (at, name)
        assert left in (stays, list(range(18))), (at, name, left)

afresh()
total = lines_run(0)
moments = range(1, total + 1, max(1, total // int(sys.argv[1])))
for at in moments:
    afresh()
    child = os.fork()
    if not child:
        lines_run(at)
        os._exit(9)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, at
    check(at)
    # Whatever it left behind, the next one goes on from there.
    assert not [one.problem for one in prune("now", WANTED, key=KEY) if one.problem], at
    check(at)
    assert sum(1 for _ in read_events("now")) == 27, at
    assert not list(Path("now").glob(".*.pruning")), at
print(len(moments))
"""


@pytest.mark.parametrize("moments", [20, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_killed_at_any_moment_every_line_is_there_or_its_tombstone(tmp_path, moments):
    done = run(KILLED, tmp_path, str(moments), timeout=500)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= min(moments, 300)


WRITER = """\
import sys, time
from pathlib import Path
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink
from support.stored import event

name, first, rotate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sink = SqliteSink(name) if name.endswith(".db") else JsonlSink(name, chain=True, max_bytes=rotate or None)
for number in range(first, first + 10_000):
    sink.write([event(number, session_id="gone" if number % 2 else "stays")])
    if number == first + 200:
        print("writing", flush=True)
    if number > first + 200 and Path("stop").exists():
        break
    time.sleep(0.005)
sink.close()
print(number, flush=True)
"""


@pytest.mark.parametrize(
    ("name", "rotate"),
    [("events.jsonl", 0), ("events.jsonl", 40_000), ("events.db", 0)],
    ids=["plain", "rotated", "store"],
)
def test_writers_lose_nothing_and_are_read_in_whole(tmp_path, name, rotate):
    """Three processes write while a fourth prunes, again and again."""
    writers = [start(WRITER, tmp_path, name, str(100_000 * n), str(rotate)) for n in (1, 2, 3)]
    for writer in writers:
        assert writer.stdout.readline() == "writing\n"
    removed = 0
    for _ in range(4):
        outcomes = prune(tmp_path / name, PruneSelection(sessions=frozenset({"gone"})))
        assert [one.problem for one in outcomes if one.problem] == []
        removed += sum(one.removed for one in outcomes)
    (tmp_path / "stop").touch()
    last = [int(writer.communicate(timeout=60)[0]) for writer in writers]
    removed += sum(one.removed for one in prune(tmp_path / name, PruneSelection(sessions=frozenset({"gone"}))))
    left = [event.payload["number"] for event in read_events([*tmp_path.glob("events*.jsonl"), *tmp_path.glob("*.db")])]
    wanted = [number for n, end in enumerate(last, 1) for number in range(100_000 * n, end + 1)]
    assert sorted(left) == [number for number in wanted if number % 2 == 0]
    assert removed == len(wanted) - len(left)


FULL = """\
import resource, sys
from pathlib import Path
from spanforge.analysis import PruneSelection, prune
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink
from support.stored import events

for name, kind in (("events.jsonl", JsonlSink), ("events.db", SqliteSink)):
    sink = kind(name)
    sink.write([*events(400, session_id="stays"), *events(10, 400, session_id="gone")])
    sink.close()
    before = Path(name).read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    [outcome] = prune(name, PruneSelection(sessions=frozenset({"gone"})))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert outcome.problem, name
    print(outcome.problem)
    assert name.endswith(".db") or Path(name).read_bytes() == before
    # A store notes that its free pages may still have what went.
    assert name.endswith(".db") or not list(Path.cwd().glob(".*.pruning"))
    [outcome] = prune(name, PruneSelection(sessions=frozenset({"gone"})))
    assert not outcome.problem, outcome.problem
    assert not list(Path.cwd().glob(".*.pruning"))
"""


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path):
    done = run(FULL, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["File too large", "disk I/O error"]
    for name in ("events.jsonl", "events.db"):
        assert [event.payload["number"] for event in read_events(tmp_path / name)] == list(range(400))
