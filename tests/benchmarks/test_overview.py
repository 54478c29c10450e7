"""An overview of 400,000 sessions: from Parquet in bulk, beside the table of a sqlite store and Python."""

from __future__ import annotations

import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.measuring import show

from spanforge.analysis.engines import connect

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

_SESSIONS = 400_000
_ROUNDS = 5
_PROMISE = 0.1
_MADE = """
    SELECT CASE WHEN range % 31 = 0 THEN 'error' ELSE 'ok' END AS status,
        (range * 7919 % 100003)::DOUBLE / 100 AS total_latency_ms,
        CASE WHEN range % 7 > 0 THEN (range * 104729 % 1009)::DOUBLE / 1008 END AS avg_grounding_score,
        range % 2000 AS total_input_tokens, range % 300 AS total_output_tokens
    FROM range(400000)
"""
_ROWS = "SELECT status, total_latency_ms, avg_grounding_score, total_input_tokens, total_output_tokens FROM session"


def _by_python(connection: sqlite3.Connection) -> dict[str, tuple[int, float]]:
    """Return the count and the 95th percentile by status; means and sums are worked out beside them."""
    by_status: dict[str, list[tuple[Any, ...]]] = {}
    for row in connection.execute(_ROWS):
        by_status.setdefault(row[0], []).append(row)
    found = {}
    for status, rows in by_status.items():
        latencies = sorted(row[1] for row in rows)
        statistics.fmean(row[2] for row in rows if row[2] is not None)
        sum(row[3] + row[4] for row in rows)
        at = 0.95 * (len(latencies) - 1)
        low = latencies[int(at)]
        found[status] = len(rows), low + (latencies[min(int(at) + 1, len(latencies) - 1)] - low) * (at % 1)
    return found


def _in_bulk(table: Any) -> Any:
    return table.group_by("status").agg(
        sessions=table.count(),
        p50_ms=table.total_latency_ms.quantile(0.5),
        p95_ms=table.total_latency_ms.quantile(0.95),
        grounding=table.avg_grounding_score.mean(),
        tokens=(table.total_input_tokens + table.total_output_tokens).sum(),
    )


def _median_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def test_an_overview_from_parquet_costs_a_tenth_of_sqlite_and_python(tmp_path: Path) -> None:
    bulk, table = connect(scratch=tmp_path), tmp_path / "sessions.parquet"
    bulk.raw_sql(f"COPY ({_MADE}) TO '{table}' (FORMAT parquet)")
    # Compiled once, as a page that is asked for again and again has it.
    query = bulk.compile(_in_bulk(bulk.read_parquet(table)))
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as connection:
        connection.execute(
            "CREATE TABLE session"
            " (status, total_latency_ms, avg_grounding_score, total_input_tokens, total_output_tokens)"
        )
        connection.executemany("INSERT INTO session VALUES (?, ?, ?, ?, ?)", bulk.raw_sql(_MADE).fetchall())
        answered = {row[0]: row for row in bulk.raw_sql(query).fetchall()}
        expected = _by_python(connection)
        assert {status: row[1] for status, row in answered.items()} == {s: count for s, (count, _) in expected.items()}
        for status, (_, p95) in expected.items():
            assert answered[status][3] == pytest.approx(p95)
        mine, other = _median_ms(lambda: bulk.raw_sql(query).fetchall()), _median_ms(lambda: _by_python(connection))
    show(
        f"An overview of {_SESSIONS:,} sessions",
        ("Parquet, ms", "SQLite and Python, ms", "ratio", "promise"),
        [(mine, other, mine / other, _PROMISE)],
    )
    assert mine <= other * _PROMISE
