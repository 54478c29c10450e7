"""Processes that are not what they seem: sub-interpreters, children with their parent's number, a full stack."""

from __future__ import annotations

import json
import os

import pytest
from support.processes import assert_exactly_once, stored, succeed


def test_a_sub_interpreter_that_is_destroyed_without_a_shutdown_hurts_nobody(tmp_path) -> None:
    """It has no thread to leave behind, so it delivers in the thread that calls."""
    body = """
import os, sys
# What measures this process does not start in a second interpreter of it, and says so on stderr.
for name in [name for name in os.environ if name.startswith("COVERAGE_PROCESS")]:
    del os.environ[name]
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    inner = interpreters.create("legacy")
else:
    import _xxsubinterpreters as interpreters
    inner = interpreters.create(isolated=False)
interpreters.run_string(inner, '''
import sys
sys.path[:] = %r
from spanforge.sdk import configure
from support.workload import one_session
configure(sinks="jsonl:events.jsonl")
one_session()
''' % sys.path)
interpreters.destroy(inner)
print("alive")
"""
    assert succeed(body, tmp_path).endswith("alive\n")
    assert_exactly_once(tmp_path / "events.jsonl", 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_child_with_its_parents_number_begins_anew(tmp_path) -> None:
    """As the first process of a PID namespace may be, whose parent is the first of another."""
    body = """
import json, os, sys
from spanforge.sdk import configure, sf_rag
number = os.getpid()
os.getpid = lambda: number
configure(sinks="jsonl:events.jsonl")
sf_rag.trace_query("q", session_id="parents")
sf_rag.flush(10)
if (pid := os.fork()) == 0:
    status = sf_rag.get_status()
    print(json.dumps([status.active_sessions, status.total_queries]), flush=True)
    sf_rag.end_session(sf_rag.trace_query("q"))
    os._exit(sf_rag.flush(10))
assert os.waitpid(pid, 0)[1] == 0
sf_rag.end_session("parents")
"""
    assert json.loads(succeed(body, tmp_path)) == [0, 0]
    assert len(stored(tmp_path / "events.jsonl")) == 4


def test_a_sink_that_waits_for_its_own_tracing_thread_is_not_waited_for_in_a_circle(tmp_path) -> None:
    body = """
import json, threading
from spanforge.sdk import configure, sf_rag
from spanforge.sinks import BaseSink

class Waiting(BaseSink):
    name = "waiting"
    def write(self, events):
        thread = threading.Thread(target=sf_rag.trace_query, args=("by the sink",))
        thread.start()
        thread.join()

configure(sinks=Waiting(), delivery="sync")
sf_rag.trace_query("q")
ledger = sf_rag.get_status().sinks["waiting"]
print(json.dumps([ledger.balanced, ledger.delivered > 0]), flush=True)
import os
os._exit(0)
"""
    assert json.loads(succeed(body, tmp_path)) == [True, True]


def test_near_the_recursion_limit_no_call_raises_and_no_session_is_denied(tmp_path) -> None:
    body = """
import json, logging, sys
from spanforge.sdk import configure, sf_rag
from spanforge.sinks.memory import MemorySink

def room(frames):
    return frames == 1 or room(frames - 1)

def deep(depth, call):
    return deep(depth - 1, call) if depth else call()

def raised(depth, call):
    try:
        deep(depth, call)
    except Exception as error:
        return type(error).__name__

logging.getLogger('spanforge').setLevel(logging.CRITICAL)  # what is counted is also warned of
configure(sinks=MemorySink())
limit, told, tried = sys.getrecursionlimit(), set(), 0
for depth in range(limit - 100, limit):
    if raised(depth, lambda: room(3)):
        continue
    tried += 1
    session_id = sf_rag.trace_query("q")
    for call in (
        lambda: sf_rag.trace_query("q"),
        lambda: sf_rag.trace_generation(session_id, "m"),
        lambda: sf_rag.flush(0),
        lambda: sf_rag.end_session(session_id),
    ):
        told.add(raised(depth, call))
    sf_rag.end_session(session_id)
status = sf_rag.get_status()
print(json.dumps([tried > 50, sorted(map(str, told)), status.replaced["out_of_stack"] > 0]))
"""
    assert json.loads(succeed(body, tmp_path)) == [True, ["None"], True]
