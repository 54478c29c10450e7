"""Mixed traffic of several organisations for a long time: memory stays flat, nothing fails, the ledger is exact."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from support.besieged import Besieged, besieged, ended

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
ORGS = ("north", "south", "east")
WARM_UP = 0.3
"""Share of the time in which memory may grow: pools fill, models load, the allocator settles."""
MAY_GROW = 1.15
PACE_S = 1.0
_EXPECTED = frozenset({200, 201, 202, 204, 404, 422})

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(SECONDS + 300),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
]


class _Traffic:
    """What one organisation does, over and over, until told to stop; paced, so that other tests may run beside it."""

    def __init__(self, server: Besieged, org: str, stop: threading.Event) -> None:
        self._client = server.client(server.key("ann", org))
        self._org = org
        self._stop = stop
        self.statuses: Counter[int] = Counter()
        self.sessions: set[str] = set()
        self.unexpected: list[str] = []
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            with self._client:
                source = self._source()
                number = 0
                while not self._stop.is_set():
                    self._round(source, number % 20)
                    number += 1
                    self._stop.wait(PACE_S)
        except BaseException as error:  # noqa: BLE001  handed to the test, which raises it
            self.problem = error

    def _source(self) -> str:
        made = self._send("POST", "/api/rag/sources", json={"name": "Notes", "visibility": "public"})
        return made.json()["id"]

    def _round(self, source: str, number: int) -> None:
        text = f"The barge {self._org}{number} is {number + 20} metres long."
        question = f"How long is the barge {self._org}{number}?"
        jobs: list[str] = []
        if number % 10 == 0:
            documents = [{"documentId": f"n{number}", "text": text}]
            sent = self._send("POST", "/api/rag/ingest", json={"dataSourceId": source, "documents": documents})
            jobs.append(sent.json()["jobId"])
        # Asked while the job writes.
        for path, body in (
            ("query", {"query": question}),
            ("query", {"query": question, "stream": True}),
            ("retrieve", {"query": question, "topK": 3}),
            ("query", {"query": "", "topK": 0}),
        ):
            self._send("POST", f"/api/rag/{path}", json=body)
        self._send("GET", "/api/rag/sources")
        self._send("DELETE", "/api/rag/sources/unknown")
        if number == 19:
            self._send("DELETE", f"/api/rag/sources/{self._source()}")
        for job in jobs:
            assert ended(self._client, job)["status"] == "completed"

    def _send(self, method: str, path: str, **body: object):
        answer = self._client.request(method, path, **body)
        self.statuses[answer.status_code] += 1
        if answer.status_code not in _EXPECTED:
            self.unexpected.append(f"{method} {path}: {answer.status_code} {answer.text}")
        if name := answer.headers.get("x-spanforge-session"):
            self.sessions.add(name)
        return answer


def test_a_long_time_of_mixed_traffic(tmp_path: Path) -> None:
    stop = threading.Event()
    memory: list[tuple[float, int]] = []
    with besieged(tmp_path / "home") as server:
        traffic = [_Traffic(server, org, stop) for org in ORGS]
        threads = [threading.Thread(target=one.run) for one in traffic]
        for thread in threads:
            thread.start()
        started = time.monotonic()
        while (passed := time.monotonic() - started) < SECONDS and not any(one.problem for one in traffic):
            memory.append((passed, server.resident_kib()))
            time.sleep(min(1.0, SECONDS / 50))
        stop.set()
        for thread in threads:
            thread.join(120)
    for one in traffic:
        if one.problem is not None:
            raise one.problem
    statuses = sum((one.statuses for one in traffic), Counter[int]())
    sessions = set[str]().union(*(one.sessions for one in traffic))
    settled = [size for passed, size in memory if passed >= WARM_UP * SECONDS]
    early, late = (
        sorted(part)[len(part) // 2] for part in (settled[: len(settled) // 5], settled[-len(settled) // 5 :])
    )
    print(f"\n{statuses.total()} answers {dict(statuses)}, {len(sessions)} sessions, RSS {early} -> {late} KiB")  # noqa: T201  the figures are what the soak is for
    unexpected = [line for one in traffic for line in one.unexpected]
    assert not unexpected, (unexpected, _errors(server.log))
    assert statuses[200] > len(sessions) / 2 > 10
    assert late <= MAY_GROW * early
    assert _errors(server.log) == []
    _assert_exact(server.said)
    assert sessions <= _stored_sessions(server.home / "events.sqlite")


def _errors(log: str) -> list[str]:
    return [line for line in log.splitlines() if '"level": "error"' in line]


def _assert_exact(said: str) -> None:
    """The ledger that the server prints when it stops: everything accepted was delivered."""
    rows = re.findall(r"(sqlite\S*).*?(\d+)\D+(\d+)\D+(\d+)\D+(\d+)\D+(\d+)", said)
    assert rows, said
    for _, accepted, delivered, failed, dropped, pending in rows:
        assert accepted == delivered
        assert (failed, dropped, pending) == ("0", "0", "0")


def _stored_sessions(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        tables = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        assert "events" in tables, sorted(tables)
        return {row[0] for row in db.execute("SELECT DISTINCT session_id FROM events")}
