"""Hosts that give no thread its time: function hosts frozen after their answer, event loops with a busy executor."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from support.processes import assert_exactly_once, end, start, stored, succeed

PREAMBLE = """\
import asyncio, json, os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from spanforge.sdk import configure, sf_rag
from support.faulty_sinks import HungSink, SlowSink
from support.workload import one_session
"""


def test_synchronous_delivery_needs_no_thread_and_no_flush(tmp_path):
    body = """
configure(sinks="jsonl:events.jsonl", delivery="sync")
one_session()
assert threading.active_count() == 1
os._exit(0)
"""
    succeed(PREAMBLE + body, tmp_path)
    assert_exactly_once(tmp_path / "events.jsonl", 1)


def test_synchronous_delivery_from_many_threads(tmp_path):
    body = """
configure(sinks="jsonl:events.jsonl", delivery="sync")
sys.setswitchinterval(1e-5)
def work():
    for _ in range(25): one_session()
with ThreadPoolExecutor(8) as pool:
    for future in [pool.submit(work) for _ in range(8)]: future.result()
os._exit(0)
"""
    succeed(PREAMBLE + body, tmp_path)
    assert_exactly_once(tmp_path / "events.jsonl", 200)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGSTOP")
def test_what_was_flushed_before_a_freeze_is_there(tmp_path):
    """A function host stops the process after its answer, and may never wake it."""
    body = """
configure(sinks="jsonl:events.jsonl", batch_delay_s=30)
for _ in range(3): one_session()
print(sf_rag.flush(10), flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""
    process = start(PREAMBLE + body, tmp_path)
    assert process.stdout is not None
    left = process.stdout.readline()
    end(process)
    assert left == "0\n"
    assert_exactly_once(tmp_path / "events.jsonl", 3)


def test_a_flush_keeps_its_deadline_and_says_what_is_left(tmp_path):
    body = """
hung = HungSink()
configure(sinks=[hung, "jsonl:events.jsonl"])
one_session()
started = time.monotonic()
print(json.dumps([sf_rag.flush(0.4), time.monotonic() - started]))
hung.release.set()
"""
    left, seconds = json.loads(succeed(PREAMBLE + body, tmp_path))
    assert left == 4
    assert 0.4 <= seconds < 5
    assert_exactly_once(tmp_path / "events.jsonl", 1)


def test_aflush_with_a_saturated_executor_leaves_the_loop_free(tmp_path):
    """Every thread of the loop's executor sleeps; the flush needs none of them, and other tasks go on meanwhile."""
    body = """
configure(sinks=SlowSink("ids", 0.5))
async def main():
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, time.sleep, 3)
    ticks = 0
    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1
    ticking = asyncio.create_task(tick())
    one_session()
    left = await sf_rag.aflush(10)
    print(json.dumps([left, ticks, busy.done()]))
    ticking.cancel()
    await busy
asyncio.run(main())
"""
    left, ticks, executor_free = json.loads(succeed(PREAMBLE + body, tmp_path))
    assert left == 0
    assert ticks >= 5, "the loop stood still"
    assert not executor_free, "the executor was not busy to the end"


def test_aflush_keeps_its_deadline(tmp_path):
    body = """
hung = HungSink()
configure(sinks=hung)
one_session()
started = time.monotonic()
print(json.dumps([asyncio.run(sf_rag.aflush(0.3)), time.monotonic() - started]))
hung.release.set()
"""
    left, seconds = json.loads(succeed(PREAMBLE + body, tmp_path))
    assert left == 4
    assert 0.3 <= seconds < 5


def test_a_frozen_process_that_is_woken_goes_on(tmp_path):
    if os.name == "nt":
        pytest.skip("Windows has no SIGSTOP")
    body = """
configure(sinks="jsonl:events.jsonl")
one_session()
print(sf_rag.flush(10), flush=True)
time.sleep(0.5)
one_session()
"""
    process = start(PREAMBLE + body, tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    assert len(stored(tmp_path / "events.jsonl")) == 4
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert_exactly_once(tmp_path / "events.jsonl", 2)
