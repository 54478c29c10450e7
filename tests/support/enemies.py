"""Who misbehaves, in a process of its own: what it costs a client to be greedy must not slow down the others' clients.

`python -m support.enemies KIND PORT` does harm with the key in the variable `ENEMY`, says so in a line once it is under
way, and goes on until its standard input ends. What becomes of its requests is its own affair; one that has stopped
asking is no enemy, and ends as a failure.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from support import bombs
from support.processes import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

LONG = " ".join(f"Sentence {i} speaks of falcon number {i * 7 % 1000} and of its nest." for i in range(6_000))
_KEY = "ENEMY"
_stop = threading.Event()


def greedy(client: httpx.Client, source: str, number: int) -> None:
    """Send a long document, and ask, as fast as it is let."""
    documents = [{"documentId": f"d{number}", "text": LONG}]
    client.post("/api/rag/ingest", json={"dataSourceId": source, "documents": documents})
    for _ in range(5):
        if client.post("/api/rag/query", json={"query": "Which falcon has a nest?"}).status_code == 429:
            _stop.wait(0.1)


def slow(client: httpx.Client, _: str, __: int) -> None:
    """Open connections, and send a byte now and then, of a head or of a body."""
    url = client.base_url
    wires: list[socket.socket] = []
    for i in range(60):
        wire = socket.create_connection((url.host, url.port or 80), timeout=5)
        wires.append(wire)
        body = b"Content-Length: 4000000\r\nContent-Type: application/json\r\n\r\n{" if i % 2 else b""
        wire.sendall(b"POST /api/rag/query HTTP/1.1\r\nHost: 127.0.0.1\r\n" + body)
    for _ in range(20):
        _stop.wait(0.1)
        for wire in wires:
            try:
                wire.sendall(b"X")
            except OSError:  # it was shown the door
                continue
    for wire in wires:
        wire.close()


def hostile(client: httpx.Client, source: str, number: int) -> None:
    """Send documents that cost more than they weigh."""
    makers = (("a.html", bombs.deep_html), ("a.pdf", bombs.pdf_object_bomb), ("a.docx", bombs.big_docx))
    name, make = makers[number % len(makers)]
    client.post("/api/rag/ingest", data={"dataSourceId": source}, files=[("files", (name, make()))])
    _stop.wait(0.5)


_KINDS: dict[str, tuple[Callable[[httpx.Client, str, int], None], int]] = {
    "greedy": (greedy, 8),
    "slow": (slow, 4),
    "hostile": (hostile, 2),
}
"""What each does, and in how many threads."""


@contextmanager
def besieging(kind: str, port: int, key: dict[str, str]) -> Generator[None]:
    """Have an enemy at work for the length of a block; what it began to ingest is called off with its source."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.enemies", kind, str(port)],
        cwd=Path(__file__).parent.parent,
        env=environment(**{_KEY: json.dumps(key)}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "at it\n", "nobody was besieged"
        yield
    finally:
        process.communicate(timeout=90)
    assert process.returncode == 0, "the enemy gave up"


def _harm(kind: str, client: httpx.Client, source: str) -> list[threading.Thread]:
    do, many = _KINDS[kind]
    numbers = iter(range(1_000_000))

    def run() -> None:
        while not _stop.is_set():
            with suppress(httpx.TransportError):
                do(client, source, next(numbers))

    threads = [threading.Thread(target=run, daemon=True) for _ in range(many)]
    for thread in threads:
        thread.start()
    return threads


def main(kind: str, port: str) -> None:
    """Misbehave until the standard input ends."""
    headers = json.loads(os.environ[_KEY])
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        source = client.post("/api/rag/sources", json={"name": "Notes", "visibility": "public"}).json()["id"]
        threads = _harm(kind, client, source)
        _stop.wait(1.0)
        print("at it", flush=True)  # noqa: T201  whoever started it waits for this
        sys.stdin.read()
        assert all(thread.is_alive() for thread in threads)
        _stop.set()
        # Whoever was greedy waits for a turn like anybody; communicate() in `besieging` has the last word.
        while (status := client.delete(f"/api/rag/sources/{source}").status_code) in {429, 503}:
            time.sleep(0.1)
        assert status == 204, status


if __name__ == "__main__":
    main(*sys.argv[1:])
