"""Throughput of the API beside a bare endpoint that calls the same pipeline function, both under the same uvicorn."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest
from support.api import PARIS, QUESTION
from support.besieged import besieged, ended
from support.processes import end, start

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

CLIENTS = 4
QUESTIONS = 10
ROUNDS = 7

BARE = """
    import socket, sys
    import uvicorn
    from fastapi import FastAPI
    from spanforge.reference import Document, Pipeline
    from spanforge.sdk import sf_rag

    sf_rag.configure(sinks=["sqlite:events.sqlite"])
    pipeline = Pipeline("index")
    pipeline.ingest([Document(document_id="paris", text=sys.argv[1])], "s")
    app = FastAPI()

    @app.post("/api/rag/query")
    def query(body: dict):
        return pipeline.ask(body["query"]).model_dump(mode="json", by_alias=True)

    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])
"""


def _ask(client: httpx.Client) -> None:
    for _ in range(QUESTIONS):
        answer = client.post("/api/rag/query", json={"query": QUESTION})
        assert answer.json()["answer"] == "Paris [1]"


def _throughput(clients: list[httpx.Client]) -> float:
    """Answers a second, each client asking again as soon as it is answered."""
    started = time.perf_counter()
    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(_ask, clients))
    return len(clients) * QUESTIONS / (time.perf_counter() - started)


def test_throughput_beside_a_bare_endpoint(tmp_path: Path) -> None:
    bare = start(BARE, tmp_path, PARIS)
    try:
        assert bare.stdout is not None
        other = f"http://127.0.0.1:{int(bare.stdout.readline())}"
        with besieged(tmp_path / "home") as server:
            headers = server.key("ann", "north")
            with server.client(headers) as client:
                source = client.post("/api/rag/sources", json={"name": "Notes"}).json()["id"]
                body = {"dataSourceId": source, "documents": [{"documentId": "paris", "text": PARIS}]}
                ended(client, client.post("/api/rag/ingest", json=body).json()["jobId"])
            sides = [
                partial(_throughput, [httpx.Client(base_url=url, headers=sent, timeout=60) for _ in range(CLIENTS)])
                for url, sent in ((server.url, headers), (other, {}))
            ]
            for side in sides:
                side()
            pairs: list[tuple[float, float]] = []
            for number in range(ROUNDS):
                order = (0, 1) if number % 2 else (1, 0)
                measured = {which: sides[which]() for which in order}
                pairs.append((measured[0], measured[1]))
            for side in sides:
                for client in side.args[0]:
                    client.close()
    finally:
        end(bare)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    ours, theirs = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    print(f"{ours:.0f}/s beside {theirs:.0f}/s: {ratio:.2f}")  # noqa: T201  the figure is what the measurement is for
    assert ratio >= 0.8
