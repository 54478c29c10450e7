"""Whoever is greedy, slow or hostile: the others wait little longer than alone."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import pytest
from support.besieged import Besieged, besieged, ended
from support.enemies import besieging

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROUNDS = 5
VISITS = 20
"""In a round, alone and beside. Rounds of both take turns, so that what else the machine does weighs on both."""
TRIES = 2
"""What the machine does beside may weigh on one of them; whoever is in the way of others is so in all."""
MOST = 3.0
"""How many times its time alone a request may take, at the 95th percentile, while somebody misbehaves."""


def _visit(client: httpx.Client, source: str) -> float:
    """Ask, look up and keep a note; return the seconds that the first two took."""
    began = time.perf_counter()
    for path in ("query", "retrieve"):
        answer = client.post(f"/api/rag/{path}", json={"query": "When does the sluice open?"})
        assert answer.status_code == 200, answer.text
    took = time.perf_counter() - began
    note = [{"documentId": "note", "text": "The sluice opens at six."}]
    sent = client.post("/api/rag/ingest", json={"dataSourceId": source, "documents": note})
    assert ended(client, sent.json()["jobId"])["status"] == "completed"
    return took


def _p95(client: httpx.Client, source: str) -> float:
    return statistics.quantiles((_visit(client, source) for _ in range(VISITS)), n=20)[-1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Besieged]:
    home: Path = tmp_path_factory.mktemp("neighbours") / "home"
    with besieged(home, SPANFORGE_SERVER_MAX_CONCURRENT="16", SPANFORGE_SERVER_MAX_CONCURRENT_PER_ORG="4") as server:
        yield server


@pytest.mark.parametrize("enemy", ["greedy", "slow", "hostile"])
def test_the_others_are_answered_nearly_as_soon_as_alone(server: Besieged, enemy: str) -> None:
    told: list[str] = []
    with server.client(server.key("sue", "south")) as sue:
        source = sue.post("/api/rag/sources", json={"name": "Notes", "visibility": "public"}).json()["id"]
        _visit(sue, source)
        for _ in range(TRIES):
            alone, beside = _rounds(server, sue, source, enemy)
            times = statistics.median(beside) / statistics.median(alone)
            if times <= MOST:
                return
            both = " ".join(f"{one * 1e3:.0f}/{other * 1e3:.0f}" for one, other in zip(beside, alone, strict=True))
            told.append(f"{times:.2f} times as long: {both} ms")
    pytest.fail("; ".join(told))


def _rounds(server: Besieged, sue: httpx.Client, source: str, enemy: str) -> tuple[list[float], list[float]]:
    ann, alone, beside = server.key("ann", "north"), list[float](), list[float]()
    for _ in range(ROUNDS):
        alone.append(_p95(sue, source))
        with besieging(enemy, server.port, ann):
            beside.append(_p95(sue, source))
    return alone, beside
