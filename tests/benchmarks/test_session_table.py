"""What the table of sessions spares: one session, and the latest fifty, out of 200,000 stored events."""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.many_sessions import EVENTS_EACH, fill
from support.measuring import show

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

_ROUNDS = 7
_SHOW_PROMISE = 1.5
_LIST_PROMISE_MS = 1.0


def _command_s(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "spanforge", *arguments], capture_output=True, check=True)
    return time.perf_counter() - started


def _latest_ms(connection: sqlite3.Connection) -> float:
    started = time.perf_counter()
    rows = connection.execute(
        "SELECT session_id, status, total_queries, total_input_tokens, avg_grounding_score, total_latency_ms "
        "FROM session ORDER BY started_us DESC, session_id DESC LIMIT 50"
    ).fetchall()
    assert len(rows) == 50
    return (time.perf_counter() - started) * 1000


def test_one_session_of_many_costs_what_the_command_costs_to_start(tmp_path: Path) -> None:
    many, one = fill(tmp_path / "many.db", 200_000 // EVENTS_EACH), fill(tmp_path / "one.db", 1)
    with closing(sqlite3.connect(many)) as connection:
        middle = connection.execute("SELECT session_id FROM events WHERE seq = 100000").fetchone()[0]
        latest = statistics.median(_latest_ms(connection) for _ in range(_ROUNDS))
    with closing(sqlite3.connect(one)) as connection:
        only = connection.execute("SELECT session_id FROM session").fetchone()[0]
    pairs = [
        (_command_s("show", middle, "--from", str(many)), _command_s("show", only, "--from", str(one)))
        for _ in range(_ROUNDS)
    ]
    ratio = statistics.median(mine / other for mine, other in pairs)
    larger, smaller = (statistics.median(side) for side in zip(*pairs, strict=True))
    show(
        "One session, and the latest fifty",
        ("show of 200,000 events, ms", "show of one session, ms", "ratio", "promise", "latest 50, ms", "promise, ms"),
        [(larger * 1000, smaller * 1000, ratio, _SHOW_PROMISE, latest, _LIST_PROMISE_MS)],
    )
    assert ratio <= _SHOW_PROMISE
    assert latest <= _LIST_PROMISE_MS
