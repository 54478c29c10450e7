"""SIGTERM with `handle_sigterm` on: deliver first, then whatever would have happened without us."""

from __future__ import annotations

import os
import signal

import pytest
from support.processes import assert_exactly_once, start, succeed

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to handle")

SCRIPT = """\
import os, signal, sys, time
from spanforge.sdk import configure, sf_rag
from support.workload import one_session

{before}
configure(sinks="jsonl:events.jsonl", handle_sigterm={on}, batch_delay_s=30)
one_session()
print("ready", flush=True)
for _ in range(1000):
    time.sleep(0.01)
    if os.path.exists("end"):
        sys.exit(7)
"""


def terminated(tmp_path, *, before: str = "", on: bool = True, ends: bool = True) -> int:
    """Send SIGTERM to a process whose events still wait; return how it ended."""
    process = start(SCRIPT.format(before=before, on=on), tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    if not ends:
        (tmp_path / "end").touch()
    _, errors = process.communicate(timeout=30)
    assert errors == ""
    return process.returncode


def test_the_default_is_to_end_by_the_signal_once_all_is_delivered(tmp_path):
    assert terminated(tmp_path) == -signal.SIGTERM
    assert_exactly_once(tmp_path / "events.jsonl", 1)


def test_a_handler_of_the_application_is_called_after_us(tmp_path):
    before = "signal.signal(signal.SIGTERM, lambda *_: (one_session('theirs'), sys.exit(9)))"
    assert terminated(tmp_path, before=before) == 9
    assert_exactly_once(tmp_path / "events.jsonl", 2)


def test_a_process_that_ignores_the_signal_goes_on(tmp_path):
    before = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    assert terminated(tmp_path, before=before, ends=False) == 7
    assert_exactly_once(tmp_path / "events.jsonl", 1)


def test_a_handler_that_carries_on_loses_nothing_later(tmp_path):
    """A server that only takes note of the signal emits until it ends, after our delivery."""
    before = "signal.signal(signal.SIGTERM, lambda *_: one_session('drained'))"
    assert terminated(tmp_path, before=before, ends=False) == 7
    assert_exactly_once(tmp_path / "events.jsonl", 2)


def test_off_the_signal_is_left_alone(tmp_path):
    """What waits is lost with the process, as the documentation says."""
    assert terminated(tmp_path, on=False) == -signal.SIGTERM
    assert_exactly_once(tmp_path / "events.jsonl", 0)


def test_configured_again_the_chain_stays_one_long(tmp_path):
    before = """
calls = []
def theirs(*_):
    calls.append(1)
    sys.exit(len(calls))
signal.signal(signal.SIGTERM, theirs)
for _ in range(3): configure(sinks="memory", handle_sigterm=True)
"""
    assert terminated(tmp_path, before=before) == 1


GOES_ON = """\
import os, signal
from spanforge.sdk import configure, sf_rag
from support.faulty_sinks import SlowSink

{before}
configure(sinks=SlowSink("ids", 0.01), handle_sigterm=True)
sf_rag.trace_query("q", session_id="long")
for _ in range(2):
    os.kill(os.getpid(), signal.SIGTERM)
    assert sf_rag.get_status().active_sessions == 1
    assert not sf_rag.cell.get().dispatcher._in_line, "later calls wait for no sink"
    sf_rag.trace_generation("long", "m")
assert sf_rag.flush(10) == 0
sf_rag.end_session("long")
"""


@pytest.mark.parametrize(
    "before",
    [
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "os.getpid = lambda: 1; os.kill = lambda _pid, number: signal.getsignal(number)(number, None)",
    ],
    ids=["ignored", "the first process of a container"],
)
def test_a_process_that_goes_on_after_the_signal_is_as_before(tmp_path, before):
    succeed(GOES_ON.format(before=before), tmp_path)
    assert len((tmp_path / "ids").read_text().split()) == 4
