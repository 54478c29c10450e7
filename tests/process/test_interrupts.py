"""Signals that come at any moment: the ledger stays exact, and no lock is left held."""

from __future__ import annotations

import json
import re
import signal

import pytest
from support.processes import run, succeed

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no timer that interrupts")

INTERRUPTED = """
import json, random, signal, time
from spanforge.sdk import configure, sf_rag
from spanforge.sinks.memory import MemorySink

class Interrupt(KeyboardInterrupt):
    pass

def interrupt(*_):
    raise Interrupt

configure(sinks=MemorySink(), delivery={delivery!r}, queue_events={room})
sf_rag.trace_query("first")
signal.signal(signal.SIGALRM, interrupt)
hits = [{{"chunk_id": "a", "score": 0.5, "source": "s"}}] * 3
interrupted, unbalanced, end = 0, 0, time.monotonic() + 1

def trace_until_interrupted():
    signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 8e-4))
    # Not for ever: Python drops an interrupt that comes while a finaliser runs.
    while time.monotonic() < end:
        with sf_rag.session("q") as session, session.retrieval() as retrieval:
            retrieval.record(hits)
    signal.setitimer(signal.ITIMER_REAL, 0)

while time.monotonic() < end:
    try:
        # A function of its own: in Python 3.12 an interrupt at a loop's jump back escapes the `try` around the loop.
        trace_until_interrupted()
    except Interrupt:
        interrupted += 1
    unbalanced += not all(ledger.balanced for ledger in sf_rag.get_status().sinks.values())
left = sf_rag.flush(10).pending
sf_rag.end_session(sf_rag.trace_query("afterwards"))
left += sf_rag.flush(10).pending
print(json.dumps([interrupted > 50, unbalanced, left]))
"""


# The interpreter's own loop can spin for ever in Python 3.11 where a thread is traced while another is interrupted.
UNTRACED = {"COVERAGE_PROCESS_START": "", "COVERAGE_PROCESS_CONFIG": ""}


@pytest.mark.parametrize("delivery", ["sync", "thread"])
@pytest.mark.parametrize("room", [10_000, 20])
def test_a_user_who_interrupts_all_the_time_finds_the_ledger_exact(tmp_path, delivery: str, room: int) -> None:
    done = succeed(INTERRUPTED.format(delivery=delivery, room=room), tmp_path, **UNTRACED)
    assert json.loads(done) == [True, 0, 0]


@pytest.mark.slow
def test_interrupts_leave_no_sink_in_use_for_ever(tmp_path) -> None:
    body = """
import json, random, signal, threading, time
from spanforge.sdk import configure, sf_rag
from spanforge.sinks.memory import MemorySink

class Interrupt(KeyboardInterrupt):
    pass

def interrupt(*_):
    raise Interrupt

configure(sinks=MemorySink(), delivery="sync")
end = time.monotonic() + 2

def trace():
    while time.monotonic() < end:
        sf_rag.trace_query("q")

def trace_until_interrupted():
    signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 8e-4))
    trace()
    signal.setitimer(signal.ITIMER_REAL, 0)

other = threading.Thread(target=trace, daemon=True)
signal.signal(signal.SIGALRM, interrupt)
other.start()
while time.monotonic() < end:
    try:
        trace_until_interrupted()
    except Interrupt:
        pass
other.join(20)
left = sf_rag.flush(10).pending
print(json.dumps([other.is_alive(), left, all(ledger.balanced for ledger in sf_rag.get_status().sinks.values())]))
"""
    assert json.loads(succeed(body, tmp_path, **UNTRACED)) == [False, 0, True]


def test_a_trace_call_looks_for_no_module(tmp_path) -> None:
    """The import system is not made for a signal handler that comes back to it."""
    body = """
import sys
from spanforge.sdk import configure, sf_rag

class Recorder:
    names = []
    def find_spec(self, name, *_):
        self.names.append(name)

def trace():
    for delivery in ("sync", "thread"):
        configure(sinks="jsonl:events.jsonl", delivery=delivery)
        with sf_rag.session("q"):
            sf_rag.trace_retrieval(chunks=[{"id": "a", "score": 0.5}])
            sf_rag.trace_generation(model="m")
        sf_rag.shutdown(5)

trace()
sys.meta_path.insert(0, Recorder())
trace()
assert Recorder.names == [], Recorder.names
"""
    succeed(body, tmp_path)


def test_a_handler_that_ends_the_sdk_while_its_own_thread_is_inside_sqlite_does_not_wait_for_itself(tmp_path) -> None:
    body = """
import gc, signal
from spanforge.sdk import configure, sf_rag

ended = []
def end(*_):
    sf_rag.shutdown(1)
    ended.append(1)

signal.signal(signal.SIGALRM, end)
for run in range(1, 101):
    configure(sinks="sqlite:events.db", delivery="sync")
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    while len(ended) < run:
        sf_rag.trace_query("q")
    (ledger,) = [one for name, one in sf_rag.get_status().sinks.items() if not name.endswith('(replaced)')]
    assert (ledger.balanced, ledger.pending, ledger.failed) == (True, 0, 0), ledger
    # What came after the end, and nothing that was open before it.
    assert set(ledger.dropped) <= {"shutdown"} and ledger.lost <= 2, ledger
gc.collect()
"""
    done = run(body, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    # What came after the end is given up, counted, and said: nothing else is, no database left open among it.
    said = re.compile(r"spanforge closed with [12] deliveries lost;")
    assert not [line for line in done.stderr.splitlines() if not said.match(line)]


@pytest.mark.parametrize("delivery", ["sync", "thread"])
def test_a_handler_that_ends_the_sdk_within_a_trace_call_loses_nothing(tmp_path, delivery: str) -> None:
    body = f"""
import json, random, signal
from spanforge.sdk import configure, sf_rag
from spanforge.sinks.memory import MemorySink

ended, unbalanced = [], 0
def end(*_):
    # What waits while this very thread is inside the sink's write is delivered when that is done.
    receipt = sf_rag.shutdown(30)
    ended.append(receipt - receipt.pending)
signal.signal(signal.SIGALRM, end)
for run in range(1, 61):
    configure(sinks=MemorySink(), delivery={delivery!r})
    sf_rag.flush()  # the receipt of what came after the end of the run before
    sf_rag.trace_query("first")
    signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-4, 2e-3))
    while len(ended) < run:
        sf_rag.trace_query("q")
    (ledger,) = [one for name, one in sf_rag.get_status().sinks.items() if not name.endswith('(replaced)')]
    unbalanced += not ledger.balanced or ledger.pending > 0
print(json.dumps([sum(ended), unbalanced]))
"""
    done = run(body, tmp_path, **UNTRACED)
    assert (done.returncode, json.loads(done.stdout)) == (0, [0, 0]), done.stderr[-2000:]


def test_a_handler_that_traces_while_another_thread_delivers_in_line_does_not_wait_for_it_in_a_circle(tmp_path) -> None:
    body = """
import json, signal, threading, time
from spanforge.sdk import configure, sf_rag
from spanforge.sinks.memory import MemorySink

handled, end = 0, time.monotonic() + 1

def handle(*_):
    global handled
    sf_rag.trace_query("in a handler")
    handled += 1
    signal.setitimer(signal.ITIMER_REAL, 0.001)

def trace():
    while time.monotonic() < end:
        sf_rag.trace_query("q")

configure(sinks=MemorySink(), delivery="sync")
other = threading.Thread(target=trace)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001)
other.start()
trace()
signal.signal(signal.SIGALRM, signal.SIG_IGN)
other.join()
left = sf_rag.flush(30).pending
(ledger,) = sf_rag.get_status().sinks.values()
# A handler that traces while its own thread is inside the sink's write looks like the sink's own tracing.
lost = ledger.lost - ledger.dropped.get("traced_by_sink", 0)
print(json.dumps([handled > 20, left, ledger.balanced, lost]))
"""
    assert json.loads(succeed(body, tmp_path, **UNTRACED)) == [True, 0, True, 0]
