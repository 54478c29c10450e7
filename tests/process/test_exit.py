"""Leaving the process, in every way there is: what was emitted arrives, and nobody waits long."""

from __future__ import annotations

import time

import pytest
from support.processes import assert_exactly_once, run, stored, succeed

PREAMBLE = """\
import atexit, sys, threading, time
from spanforge.sdk import configure, sf_rag
from support.workload import one_session
"""


def script(body: str, configured: str = 'configure(sinks="jsonl:events.jsonl")') -> str:
    return f"{PREAMBLE}{configured}\n{body}"


def test_plain_exit_right_after_a_burst(tmp_path):
    succeed(script("for _ in range(500): one_session()"), tmp_path)
    assert_exactly_once(tmp_path / "events.jsonl", 500)


def test_plain_exit_after_idle_seconds(tmp_path):
    succeed(script("one_session(); time.sleep(2.5); one_session()"), tmp_path)
    assert_exactly_once(tmp_path / "events.jsonl", 2)


def test_an_uncaught_exception(tmp_path):
    done = run(script("one_session()\nraise RuntimeError('mine')"), tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1, "the application's own error, and nothing of ours"
    assert_exactly_once(tmp_path / "events.jsonl", 1)


def test_sys_exit_in_a_thread_and_in_the_main_thread(tmp_path):
    body = """
def work():
    one_session()
    sys.exit(3)
thread = threading.Thread(target=work); thread.start(); thread.join()
one_session()
sys.exit(5)
"""
    done = run(script(body), tmp_path)
    assert (done.returncode, done.stderr) == (5, "")
    assert_exactly_once(tmp_path / "events.jsonl", 2)


def test_work_handed_to_a_thread_pool_then_exit(tmp_path):
    body = """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(4)
def work():
    time.sleep(0.05)
    one_session()
for _ in range(40): pool.submit(work)
"""
    succeed(script(body), tmp_path)
    assert_exactly_once(tmp_path / "events.jsonl", 40)


def test_first_event_from_a_pool_thread_while_the_interpreter_ends(tmp_path):
    body = """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
def work():
    time.sleep(0.3)
    one_session()
for _ in range(4): pool.submit(work)
"""
    succeed(script(body), tmp_path)
    assert_exactly_once(tmp_path / "events.jsonl", 4)


def test_threads_of_the_application_that_outlive_the_main_thread(tmp_path):
    body = """
def work():
    for _ in range(20):
        time.sleep(0.02)
        one_session()
threading.Thread(target=work).start()
"""
    succeed(script(body), tmp_path)
    assert_exactly_once(tmp_path / "events.jsonl", 20)


@pytest.mark.parametrize("first_event", ["", "one_session()"], ids=["no event before", "an event before"])
def test_atexit_handlers_before_and_after_ours(tmp_path, first_event):
    """Handlers run last in, first out: the one registered first runs when our own delivery is over."""
    body = f"""
atexit.register(lambda: one_session("registered-first"))
{first_event}
atexit.register(lambda: one_session("registered-last"))
"""
    succeed(script(body), tmp_path)
    events = assert_exactly_once(tmp_path / "events.jsonl", 3 if first_event else 2)
    assert {"registered-first", "registered-last"} <= {event["session_id"] for event in events}


def test_sessions_left_open_are_ended_by_the_exit(tmp_path):
    succeed(script('sf_rag.trace_query("q", session_id="left-open")'), tmp_path)
    query, summary = stored(tmp_path / "events.jsonl")
    assert query["event_type"] == "llm.rag.query"
    assert summary["payload"]["end_reason"] == "process_exit"


def test_exit_after_shutdown_is_silent(tmp_path):
    succeed(script("one_session(); sf_rag.shutdown(); sf_rag.shutdown(); one_session()"), tmp_path)
    assert_exactly_once(tmp_path / "events.jsonl", 1)


def _seconds(code: str, folder) -> float:
    started = time.monotonic()
    succeed(code, folder)
    return time.monotonic() - started


LATE = 'atexit.register(lambda: [one_session(f"late-{n}") for n in range(20)])\n'


@pytest.mark.parametrize("late", ["", LATE], ids=["nothing after", "many events after ours"])
def test_a_hung_sink_holds_the_exit_up_no_longer_than_the_timeout(tmp_path, late):
    healthy = _seconds(script(f"{late}one_session()"), tmp_path)
    configured = (
        "from support.faulty_sinks import HungSink\n"
        'configure(sinks=[HungSink(), "jsonl:beside.jsonl"], exit_timeout_s=1.0)'
    )
    started = time.monotonic()
    done = run(script(f"{late}one_session()", configured), tmp_path)
    hung = time.monotonic() - started
    assert (done.returncode, done.stderr) == (0, "spanforge: the process ends with 4 deliveries pending\n")
    assert hung <= 2 * healthy + 1.0 + 1.5, "the margin is for a busy machine"
    assert hung >= 0.9, "the sink did hang"
    assert_exactly_once(tmp_path / "beside.jsonl", 21 if late else 1)


def test_a_receiver_out_of_reach_holds_the_exit_up_no_longer_than_the_timeout(tmp_path):
    """Nobody listens on port 9 of the loopback address."""
    healthy = _seconds(script("one_session()"), tmp_path)
    configured = """
import socket
from spanforge.sinks.base import BaseSink
class Remote(BaseSink):
    name = "remote"
    def write(self, events): socket.create_connection(("127.0.0.1", 9))
configure(sinks=[Remote(), "jsonl:beside.jsonl"], exit_timeout_s=1.0)
"""
    started = time.monotonic()
    done = run(script("one_session()", configured), tmp_path)
    seconds = time.monotonic() - started
    down, ends = done.stderr.splitlines()
    assert (done.returncode, down.rpartition(":")[0]) == (0, "spanforge sink remote")
    assert ends == "spanforge: the process ends with 4 deliveries pending"
    assert seconds <= healthy + 1.0 + 1.5, "the margin is for a busy machine"
    assert_exactly_once(tmp_path / "beside.jsonl", 1)


def test_what_a_sink_keeps_to_the_end_is_said_to_be_pending(tmp_path):
    configured = """
from spanforge.sinks.base import BaseSink, Receipt
class Keeping(BaseSink):
    name = "keeping"
    def write(self, events): return Receipt()
configure(sinks=Keeping())
"""
    done = run(script("one_session()", configured), tmp_path)
    assert (done.returncode, done.stderr) == (0, "spanforge: the process ends with 4 deliveries pending\n")


def test_a_slow_sink_gets_its_time(tmp_path):
    configured = "from support.faulty_sinks import SlowSink\nconfigure(sinks=SlowSink('ids', 0.6), exit_timeout_s=5)"
    succeed(script("one_session()", configured), tmp_path)
    assert len((tmp_path / "ids").read_text().split()) == 4
