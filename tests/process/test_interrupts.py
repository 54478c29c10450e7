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
interrupted, unbalanced, end = 0, 0, time.monotonic() + 2
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 8e-4))
        # Not for ever: Python drops an interrupt that comes while a finaliser runs.
        while time.monotonic() < end:
            with sf_rag.session("q") as session, session.retrieval() as retrieval:
                retrieval.record(hits)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        interrupted += 1
    unbalanced += not all(ledger.balanced for ledger in sf_rag.get_status().sinks.values())
left = sf_rag.flush(10)
sf_rag.end_session(sf_rag.trace_query("afterwards"))
left += sf_rag.flush(10)
print(json.dumps([interrupted > 50, unbalanced, left]))
"""


@pytest.mark.parametrize(("delivery", "room"), [("sync", 10_000), ("sync", 20)])
def test_a_user_who_interrupts_all_the_time_finds_the_ledger_exact(tmp_path, delivery: str, room: int) -> None:
    done = succeed(INTERRUPTED.format(delivery=delivery, room=room), tmp_path)
    assert json.loads(done) == [True, 0, 0]


def test_a_handler_that_ends_the_sdk_while_its_own_thread_is_inside_sqlite_does_not_wait_for_itself(tmp_path) -> None:
    body = """
import signal
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
    assert all(ledger.balanced for ledger in sf_rag.get_status().sinks.values())
"""
    done = run(body, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    # What was being written when it ended is given up, counted, and said: nothing else is.
    said = re.compile(r"spanforge closed with [12] deliveries lost;|spanforge sink sqlite:events\.db: \w+;")
    assert all(said.match(line) for line in done.stderr.splitlines()), done.stderr[-2000:]
