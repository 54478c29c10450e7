"""Uploads made to hurt are refused clearly, cost little, and nobody else notices."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from typing import TYPE_CHECKING, Self

import pytest
from support import bombs
from support.besieged import Besieged, besieged, ended

from spanforge.server.ingest.sniffing import sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

MAY_GROW_KIB = 640 << 10
"""What the server may take at its peak over what it had: the longest upload here, a few times over."""
ONE = ("failed", "PARSE_ERROR")


class _Neighbour:
    """Someone of another organisation, who goes on asking."""

    def __init__(self, server: Besieged) -> None:
        self._client = server.client(server.key("bob", "south"))
        self._stop = threading.Event()
        self._asked = threading.Event()
        self._client.post("/api/rag/sources", json={"name": "Notes", "visibility": "public"})
        self.statuses: list[int] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            answer = self._client.post("/api/rag/retrieve", json={"query": "What is the capital of France?"})
            self.statuses.append(answer.status_code)
            self._asked.set()
            self._stop.wait(0.05)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._asked.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)
        self._client.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Besieged]:
    with besieged(tmp_path_factory.mktemp("bombs") / "home") as server:
        yield server


@pytest.fixture(scope="module")
def ann(server: Besieged) -> Iterator[httpx.Client]:
    with server.client(server.key("ann", "north")) as client:
        yield client


def _source(client: httpx.Client) -> str:
    made = client.post("/api/rag/sources", json={"name": "Notes"})
    return made.json()["id"]


@pytest.mark.parametrize(
    ("name", "make", "expected"),
    [
        ("a.docx", bombs.big_docx, ONE),
        pytest.param("a.docx", bombs.lying_docx, ONE, marks=pytest.mark.slow),
        pytest.param("a.docx", bombs.padded_docx, ONE, marks=pytest.mark.slow),
        ("a.pdf", bombs.pdf_stream_bomb, ONE),
        ("a.pdf", bombs.pdf_object_bomb, ONE),
        ("a.html", bombs.deep_html, ONE),
        # It costs all the processor time a document may have.
        pytest.param("a.csv", bombs.huge_cell, ONE, marks=pytest.mark.slow),
        ("a.jsonl", lambda: b"[" * (4 << 20), ONE),
    ],
    ids=["zip", "lying zip", "padded zip", "pdf stream", "pdf objects", "deep html", "huge cell", "deep json lines"],
)
def test_a_bomb_is_refused_while_others_are_answered(
    server: Besieged, ann: httpx.Client, name: str, make: Callable[[], bytes], expected: tuple[str, str]
) -> None:
    content, source = make(), _source(ann)
    with _Neighbour(server) as neighbour:
        before = server.peak_kib() if sys.platform == "linux" else 0
        sent = ann.post(
            "/api/rag/ingest",
            data={"dataSourceId": source},
            files=[("files", ("good.md", b"The sluice opens at six.")), ("files", (name, content))],
        )
        if sent.status_code == 202:
            job = ended(ann, sent.json()["jobId"])
            assert (job["status"], job["indexed"]) == ("completed", 1)
            found = "failed", *(one["code"] for one in job["failures"])
        else:
            assert sent.status_code == 422
            found = "refused", sent.json()["code"]
        after = server.peak_kib() if sys.platform == "linux" else 0
    assert found == expected
    assert set(neighbour.statuses) == {200}
    assert after - before < MAY_GROW_KIB


@pytest.mark.parametrize("body", [b"[" * (1 << 20), b'{"a":' * 200_000], ids=["lists", "objects"])
def test_deep_json_is_refused(ann: httpx.Client, body: bytes) -> None:
    for path in ("query", "retrieve", "sources", "ingest"):
        answer = ann.post(f"/api/rag/{path}", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_INPUT")


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP", "deflate", "br", "gzip, identity"])
def test_compressed_bodies_are_refused(ann: httpx.Client, coding: str) -> None:
    body = gzip.compress(json.dumps({"query": "x" * (4 << 20)}).encode())
    for path in ("query", "retrieve", "sources", "ingest"):
        headers = {"Content-Type": "application/json", "Content-Encoding": coding}
        answer = ann.post(f"/api/rag/{path}", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
        assert "Content-Encoding" in answer.json()["detail"]


def test_ordinary_pages_of_many_elements_are_read() -> None:
    rows = b"<tr><td><p>one<li>two<br>" * 20_000
    page = b"<!doctype html><html><body><table>" + rows + b"</table>" + b"<div><b>x</b></div>" * 20_000
    assert sniff(page, "a.html") == "text/html"
