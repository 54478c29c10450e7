"""Requests on a kept connection: `spanforge serve` beside the same application on a socket that uvicorn opens."""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from typing import TYPE_CHECKING

import httpx
import pytest
from support.api import PARIS, QUESTION, bearer
from support.besieged import besieged, ended
from support.processes import end, start

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

ROUNDS, EACH, MOST = 15, 10, 1.1

OWN_SOCKET = """
    import sys
    import uvicorn
    from spanforge.server.logs import configure_logging
    from spanforge.sdk import ServerSettings, sf_rag
    from spanforge.server import create_app

    sys.stderr = open("log", "w")  # a pipe that nobody reads would stop it
    configure_logging()
    app = create_app(ServerSettings.load({"home": "home", "burst": 10**6, "requests_per_minute": 10**7}))
    sf_rag.configure(sinks=[f"sqlite:{app.state.service.events}"])  # which the pages look at
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, server_header=False))
    startup = server.startup

    async def told(sockets=None):
        await startup(sockets)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)

    server.startup = told
    from spanforge.reference import User
    print(app.state.service.keys.add(User(user_id="ann", org_id="north", roles={"admin"})), flush=True)
    server.run()
"""


def _health(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def _question(client: httpx.Client) -> None:
    assert client.post("/api/rag/query", json={"query": QUESTION}).json()["answer"] == "Paris [1]"


def _stream(client: httpx.Client) -> None:
    with client.stream("POST", "/api/rag/query", json={"query": QUESTION, "stream": True}) as answer:
        assert "event: result" in answer.read().decode()


def _page(client: httpx.Client) -> None:
    assert client.get("/ui/sign-in").status_code == 200


def _furnished(url: str, headers: dict[str, str]) -> httpx.Client:
    client = httpx.Client(base_url=url, headers=headers, timeout=60)
    source = client.post("/api/rag/sources", json={"name": "Notes"}).json()["id"]
    body = {"dataSourceId": source, "documents": [{"documentId": "paris", "text": PARIS}]}
    ended(client, client.post("/api/rag/ingest", json=body).json()["jobId"])
    return client


def _ms(ask: Callable[[httpx.Client], None], client: httpx.Client) -> float:
    """The quickest of a few: what the machine does besides only ever adds."""
    took: list[float] = []
    for _ in range(EACH):
        began = time.perf_counter()
        ask(client)
        took.append((time.perf_counter() - began) * 1e3)
    return min(took)


def test_a_kept_connection_is_as_quick_as_on_uvicorns_own_socket(tmp_path: Path) -> None:
    other = start(OWN_SOCKET, tmp_path)
    try:
        assert other.stdout is not None
        key, port = other.stdout.readline().strip(), int(other.stdout.readline())
        with besieged(tmp_path / "served") as server:
            ours = _furnished(server.url, server.key("ann", "north", ["admin"]))
            theirs = _furnished(f"http://127.0.0.1:{port}", bearer(key))
            ratios: dict[str, float] = {}
            with closing(ours), closing(theirs):
                for ask in (_health, _question, _stream, _page):
                    ask(ours)
                    ask(theirs)
                    pairs = [(_ms(ask, ours), _ms(ask, theirs)) for _ in range(ROUNDS)]
                    ratios[ask.__name__] = statistics.median(a / b for a, b in pairs)
    finally:
        end(other)
    print(ratios)  # noqa: T201  the figures are what the measurement is for
    assert max(ratios.values()) <= MOST
