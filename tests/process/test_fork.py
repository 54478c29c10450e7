"""Children of every kind deliver each of their events once, and start from nothing."""

from __future__ import annotations

import json
import os

import pytest
from support.processes import assert_exactly_once, stored, succeed
from support.workload import EVENTS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")

PREAMBLE = """\
import json, multiprocessing, os, sys, threading, time, warnings
from spanforge.sdk import configure, sf_rag
from support.workload import one_session
# Python 3.12 warns of every fork of a process with threads, which is what is tried here.
warnings.filterwarnings("ignore", category=DeprecationWarning)
"""
CONFIGURE = 'configure(sinks="jsonl:events.jsonl")\n'


def script(body: str) -> str:
    return f"{PREAMBLE}{body}"


def test_the_child_starts_from_nothing(tmp_path):
    """Ledger, queues and sessions are empty; ids are drawn anew; what was queued is the parent's."""
    body = """
configure(sinks="jsonl:events.jsonl", batch_delay_s=0.5)
sf_rag.trace_query("open in the parent", session_id="parents")
one_session()
one_session()
if (pid := os.fork()) == 0:
    status = sf_rag.get_status()
    ledger = status.sinks["jsonl:events.jsonl"]
    print(json.dumps([status.active_sessions, status.total_queries, ledger.accepted, ledger.pending]), flush=True)
    one_session()
    os._exit(sf_rag.flush(10))
assert os.waitpid(pid, 0)[1] == 0
sf_rag.end_session("parents")
one_session()
sf_rag.flush(10)
"""
    assert json.loads(succeed(script(body), tmp_path)) == [0, 0, 0, 0]
    events = stored(tmp_path / "events.jsonl")
    assert len({event["event_id"] for event in events}) == len(events) == EVENTS * 4 + 2


def test_ids_of_parent_and_children_share_no_randomness(tmp_path):
    """Ids of one millisecond count up from a random start: children that inherited it would repeat the parent's."""
    body = f"""{CONFIGURE}
one_session()
for _ in range(8):
    if os.fork() == 0:
        for _ in range(50): one_session()
        os._exit(sf_rag.flush(30))
for _ in range(50): one_session()
sys.exit(any(os.wait()[1] for _ in range(8)))
"""
    events = assert_exactly_once_of(tmp_path, body, 451)
    assert len({event["event_id"][10:] for event in events}) == len(events)


def assert_exactly_once_of(tmp_path, body: str, sessions: int):
    succeed(script(body), tmp_path)
    return assert_exactly_once(tmp_path / "events.jsonl", sessions)


def test_a_child_that_leaves_by_sys_exit(tmp_path):
    body = f"""{CONFIGURE}
one_session()
if (pid := os.fork()) == 0:
    one_session()
    sys.exit(0)
os.waitpid(pid, 0)
one_session()
"""
    assert_exactly_once_of(tmp_path, body, 3)


def test_a_child_that_leaves_by_os_exit_after_a_flush(tmp_path):
    body = f"""{CONFIGURE}
one_session()
if (pid := os.fork()) == 0:
    one_session()
    os._exit(sf_rag.flush(10))
assert os.waitpid(pid, 0)[1] == 0
"""
    assert_exactly_once_of(tmp_path, body, 2)


def test_a_grandchild(tmp_path):
    body = f"""{CONFIGURE}
one_session()
if os.fork() == 0:
    one_session()
    if os.fork() == 0:
        one_session()
        sys.exit(0)
    os.wait()
    sys.exit(0)
os.wait()
"""
    assert_exactly_once_of(tmp_path, body, 3)


@pytest.mark.parametrize("used_before", [True, False], ids=["used before", "first used in the child"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(tmp_path, method, used_before):
    body = f"""
def work(n):
    {CONFIGURE if method != "fork" else "pass"}
    one_session(f"child-{{n}}")

if __name__ == "__main__":
    {CONFIGURE.strip()}
    {"one_session()" if used_before else "pass"}
    context = multiprocessing.get_context("{method}")
    children = [context.Process(target=work, args=(n,)) for n in range(3)]
    for child in children: child.start()
    for child in children: child.join()
    sys.exit(any(child.exitcode for child in children))
"""
    assert_exactly_once_of(tmp_path, body, 3 + used_before)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_client_may_be_an_argument_of_a_child(tmp_path, method):
    """It is no more than a name: the child uses the one of its own process."""
    body = f"""
def work(client):
    assert client is sf_rag
    client.end_session(client.trace_query("q"))

if __name__ == "__main__":
    one_session()
    child = multiprocessing.get_context("{method}").Process(target=work, args=(sf_rag,))
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""
    succeed(script(body), tmp_path, SPANFORGE_SINKS="jsonl:events.jsonl")
    assert len(stored(tmp_path / "events.jsonl")) == EVENTS + 2


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_process_pool_executor(tmp_path, method):
    body = f"""
from concurrent.futures import ProcessPoolExecutor

def work(n):
    one_session(f"job-{{n}}")

if __name__ == "__main__":
    {CONFIGURE.strip()}
    one_session()
    context = multiprocessing.get_context("{method}")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        list(pool.map(work, range(20)))
"""
    succeed(script(body), tmp_path, SPANFORGE_SINKS="jsonl:events.jsonl")
    assert_exactly_once(tmp_path / "events.jsonl", 21)


def test_multiprocessing_pool_that_is_closed(tmp_path):
    body = f"""
def work(n):
    one_session(f"job-{{n}}")

if __name__ == "__main__":
    {CONFIGURE.strip()}
    one_session()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, range(20))
        pool.close()
        pool.join()
"""
    assert_exactly_once_of(tmp_path, body, 21)


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(sf_rag.flush(10))"], ids=["exit", "_exit"])
def test_a_fork_that_runs_no_hooks(tmp_path, leave):
    """Some servers fork in C: no at-fork hook of Python runs, and the child has its process id to go by.

    It delivers in line: the interpreter's lock is as the parent's other threads left it, so a thread may never run.
    For the same reason the parent has none here: one that reaches for that lock in the moment of such a fork hangs the
    child whatever it does, which is CPython's own limit.
    """
    body = f"""import os
os.environ["SPANFORGE_DELIVERY"] = "sync"
{CONFIGURE}
import ctypes
one_session()
sf_rag.flush(10)
# PyDLL keeps the interpreter's lock during the call, as a server that embeds Python does.
libc = ctypes.PyDLL(None)
hooks, threads = [], threading.active_count()
os.register_at_fork(after_in_child=lambda: hooks.append(1))
pids = []
for _ in range(20):
    pid = libc.fork()
    if pid == 0:
        assert not hooks
        for _ in range(5): one_session()
        assert sf_rag.get_status().total_queries == 5
        assert threading.active_count() == threads, "no new thread"
        {leave}
    pids.append(pid)
assert not any(os.waitpid(pid, 0)[1] for pid in pids)
one_session()
"""
    assert_exactly_once_of(tmp_path, body, 102)


def assert_children(tmp_path, forks: int) -> None:
    """Each child delivered its own session, once."""
    ids = [e["event_id"] for e in stored(tmp_path / "events.jsonl") if e["session_id"].startswith("child-")]
    assert len(ids) == len(set(ids)) == EVENTS * forks


FORKS_UNDER_LOCKS = """
import random
stop = threading.Event()
def busy():
    while not stop.is_set():
        one_session()
        sf_rag.get_status()
threads = [threading.Thread(target=busy) for _ in range(3)]
sys.setswitchinterval(1e-5)
for thread in threads: thread.start()
for n in range({forks}):
    time.sleep(random.random() * 0.005)
    if (pid := os.fork()) == 0:
        one_session(f"child-{{n}}")
        os._exit(sf_rag.flush(20))
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
for thread in threads: thread.join()
sf_rag.flush(120)
"""


@pytest.mark.parametrize(
    ("sink", "forks"),
    [("jsonl", 60), pytest.param("jsonl", 1_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
)
def test_forks_while_other_threads_hold_the_locks(tmp_path, sink, forks):
    """No child waits for a lock whose holder was not forked, and each delivers its session once."""
    body = f'configure(sinks="{sink}:events.jsonl", queue_events=200_000, queue_bytes=1 << 30)\n'
    succeed(script(body + FORKS_UNDER_LOCKS.format(forks=forks)), tmp_path, timeout=60 + forks)
    assert_children(tmp_path, forks)


def test_forks_while_a_thread_reconfigures(tmp_path):
    """The lock around `configure()` is held most of the time here; children take one of their own.

    The first configuration is over before the first fork: it imports the sink, and Python itself leaves the locks of
    an import that was under way in another thread locked in the child for good.
    """
    body = """
configure(sinks="jsonl:events.jsonl")
stop = threading.Event()
def reconfigure():
    while not stop.is_set():
        configure(sinks="jsonl:events.jsonl")
        one_session()
thread = threading.Thread(target=reconfigure)
thread.start()
for n in range(40):
    time.sleep(0.003)
    if (pid := os.fork()) == 0:
        one_session(f"child-{n}")
        os._exit(sf_rag.flush(20))
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
"""
    succeed(script(body), tmp_path)
    assert_children(tmp_path, 40)
