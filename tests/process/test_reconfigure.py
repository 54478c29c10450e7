"""Configured and shut down over and over: threads and descriptors stay flat, and nothing is lost on the way."""

from __future__ import annotations

import json
import sys

import pytest
from support.processes import assert_exactly_once, succeed

SCRIPT = """\
import json, os, sys, threading
from spanforge.sdk import configure, sf_rag
from support.workload import one_session

def usage():
    sf_rag.flush(30)  # a sink opens its file with its first write
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return threading.active_count(), descriptors

def cycle():
    configure(sinks=["jsonl:events.jsonl", "sqlite:events.db"], batch_delay_s=0)
    one_session()
    {ending}

for _ in range(5): cycle()
before = usage()
for _ in range(int(sys.argv[1])): cycle()
print(json.dumps([before, usage()]))
"""


@pytest.mark.parametrize("cycles", [60, pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
@pytest.mark.parametrize("ending", ["sf_rag.shutdown(10)", "pass"], ids=["with shutdown", "without"])
def test_cycles_leave_nothing_behind(tmp_path, cycles, ending):
    before, after = json.loads(succeed(SCRIPT.format(ending=ending), tmp_path, str(cycles), timeout=600))
    assert after[0] <= before[0], "a worker outlived its configuration"
    assert sys.platform != "linux" or before[1] > 2, "descriptors can be counted here"
    assert after[1] <= before[1] + 2, "a descriptor was left open"
    assert_exactly_once(tmp_path / "events.jsonl", cycles + 5)


def test_a_worker_with_a_hung_sink_does_not_keep_the_next_configuration(tmp_path):
    body = """\
import json, threading, time
from spanforge.sdk import configure, sf_rag
from support.faulty_sinks import HungSink
from support.workload import one_session

hung = HungSink()
configure(sinks=hung)
one_session()
started = time.monotonic()
configure(sinks="jsonl:events.jsonl")
waited = time.monotonic() - started
one_session()
print(json.dumps([sf_rag.flush(10), sf_rag.flush(10), waited]))
hung.release.set()
"""
    first, second, waited = json.loads(succeed(body, tmp_path))
    assert (first, second) == (4, 4), "what the old sink has not written is said until it has"
    assert waited >= 1.0, "the old sink got its time"
    assert_exactly_once(tmp_path / "events.jsonl", 1)


def test_threads_that_trace_while_another_reconfigures_lose_nothing(tmp_path):
    body = """\
import sys, threading
from spanforge.sdk import configure, sf_rag
from support.workload import one_session

configure(sinks="jsonl:events.jsonl")
def work():
    for _ in range(100): one_session()
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
while any(thread.is_alive() for thread in threads): configure(sinks="jsonl:events.jsonl", batch_delay_s=0)
sf_rag.flush(20)
"""
    succeed(body, tmp_path, SPANFORGE_EXIT_TIMEOUT_S="20")
    assert_exactly_once(tmp_path / "events.jsonl", 400)
