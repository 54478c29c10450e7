"""kill -9 at random moments: what `flush()` acknowledged is there, and every line can be read."""

from __future__ import annotations

import random
import time

import pytest
from support.processes import start

from spanforge import read_events

SCRIPT = """\
from spanforge.sdk import configure, sf_rag
from support.workload import one_session

configure(sinks={sinks}, batch_delay_s=0.001)
print("ready", flush=True)
while True:
    ids = [one_session() for _ in range(5)]
    if sf_rag.flush(10) == 0:
        print(*ids, flush=True)
"""


def killed(tmp_path, sinks: str, rng: random.Random) -> list[str]:
    """Run a process for a random moment, kill it, and return the sessions it was told are safe."""
    process = start(SCRIPT.format(sinks=sinks), tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(rng.uniform(0.01, 0.3))
    process.kill()
    out, _ = process.communicate(timeout=30)
    # The last line of the pipe may be torn as well; it promises nothing then.
    return [session for line in out.splitlines(keepends=True) if line.endswith("\n") for session in line.split()]


@pytest.mark.parametrize("rounds", [6, pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
@pytest.mark.parametrize(("sinks", "file"), [("jsonl:events.jsonl", "events.jsonl"), ("sqlite:events.db", "events.db")])
def test_nothing_acknowledged_is_lost(tmp_path, sinks, file, rounds):
    """The processes write one file after the other, so that each meets what the one before left behind."""
    rng = random.Random(rounds)  # noqa: S311  moments, not secrets
    safe = [session for _ in range(rounds) for session in killed(tmp_path, repr(sinks), rng)]
    assert safe, "no process lived long enough to be told anything"
    seen: dict[str, set[str]] = {}
    for event in read_events(tmp_path / file):
        seen.setdefault(event.session_id, set()).add(event.event_id)
    assert [session for session in safe if len(seen.get(session, ())) != 4] == []
