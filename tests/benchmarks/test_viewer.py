"""What pages of the viewer take over a million stored events: the first beside few, the others beside SQLite alone."""

from __future__ import annotations

import re
import sqlite3
import statistics
import time
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from support.many_sessions import EVENTS_EACH, fill
from support.measuring import show

from spanforge.reader.store import connect
from spanforge.viewer import create_viewer

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

_ROUNDS = 9
_FEW, _MANY = 10_000, 1_000_000
_PROMISE = 2.0
_FURTHER = 2.0
"""What a further page may take of the time in which SQLite alone answers the page's own queries."""
_MAKING_S = 0.05
"""What making a page of any figures may add; it is most of a page whose queries are quick."""
_ADDRESS = "http://127.0.0.1"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("many") / "many.db", _MANY // EVENTS_EACH)


def _first_screen_s(store: Path) -> float:
    """Seconds from nothing to the first page of sessions; the store's own pages are in the machine's cache."""
    started = time.perf_counter()
    app = create_viewer(store)
    answer = TestClient(app, base_url=_ADDRESS).get("/sessions")
    took = time.perf_counter() - started
    app.state.close()
    assert answer.text.count('role="rowheader"') == 50
    return took


def test_the_first_screen_does_not_wait_for_the_store(many: Path, tmp_path: Path) -> None:
    few = fill(tmp_path / "few.db", _FEW // EVENTS_EACH)
    for store in (few, many):
        _first_screen_s(store)
    pairs = [(_first_screen_s(many), _first_screen_s(few)) for _ in range(_ROUNDS)]
    ratio = statistics.median(mine / other for mine, other in pairs)
    larger, smaller = (statistics.median(side) for side in zip(*pairs, strict=True))
    show(
        "First screen of the viewer",
        ("1,000,000 events, ms", "10,000 events, ms", "ratio", "promise"),
        [(larger * 1000, smaller * 1000, ratio, _PROMISE)],
    )
    assert ratio <= _PROMISE


def _seconds_in_sqlite(store: Path, statements: list[str]) -> float:
    with closing(sqlite3.connect(store)) as connection:
        started = time.perf_counter()
        for statement in statements:
            connection.execute(statement).fetchall()
        return time.perf_counter() - started


def test_a_further_page_takes_little_beside_its_queries(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def heard(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(asked.append)
        return connection

    monkeypatch.setattr("spanforge.viewer.store.connect", heard)
    told: list[tuple[str, float, float, float, float]] = []
    with closing(_Pages(many)) as pages:
        ref = pages.first_session()
        # Each time another address: what a page shows is kept for a while.
        addresses = {
            "overview": "/overview?group=model&latency_min={}",
            "compared": "/overview?against=model%3Dmodel-b&latency_min={}",
            "sorted": "/sessions?sort=grounding&latency_min={}",
            "found": "/sessions?retriever=docs&status=error&latency_min={}",
            "a later one": "/sessions?page={}2",
            "session": f"/sessions/{ref}?round={{}}",
        }
        for name, address in addresses.items():
            rounds: list[tuple[float, float]] = []
            for number in range(1, _ROUNDS + 1):
                asked.clear()
                took = pages.seconds(address.format(number))
                rounds.append((took, _seconds_in_sqlite(many, list(asked))))
            page, queries = (statistics.median(side) for side in zip(*rounds, strict=True))
            told.append((name, page * 1000, queries * 1000, page / queries, _FURTHER))
    show("Further pages of a million events", ("page", "ms", "its queries, ms", "ratio", "promise"), told)
    late = [row for row in told if row[1] > _FURTHER * row[2] + _MAKING_S * 1000]
    assert not late


class _Pages:
    def __init__(self, store: Path) -> None:
        self._app = create_viewer(store)
        self._client = TestClient(self._app, base_url=_ADDRESS)

    def first_session(self) -> str:
        found = re.search(r'href="/sessions/([0-9A-Z]+)"', self._client.get("/sessions").text)
        assert found is not None
        return found[1]

    def seconds(self, address: str) -> float:
        started = time.perf_counter()
        answer = self._client.get(address)
        took = time.perf_counter() - started
        assert answer.status_code == 200, answer.text
        return took

    def close(self) -> None:
        self._client.close()
        self._app.state.close()
