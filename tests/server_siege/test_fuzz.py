"""Damaged uploads, odd headers and broken HTTP: every one is answered below 500, and no text comes back."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.api import Api, running
from support.besieged import besieged
from support.documents import HTML, pdf, word
from support.overhearing import overhearing

from spanforge.testing import find_canary

CANARY = "quittengelee-8f2c-zwetschge"
FILES = {
    "a.pdf": pdf([f"The sluice of {CANARY} opens."]),
    "a.docx": word([f"The sluice of {CANARY} opens."]),
    "a.html": HTML.encode() + CANARY.encode(),
    "a.csv": f"place,hour\n{CANARY},6\n".encode(),
    "a.jsonl": json.dumps({"text": CANARY}).encode(),
}
_NAMES = ["authorization", "content-type", "traceparent", "accept", "x-request-id", "cookie", "range", "expect-ct"]


@pytest.fixture
def open_api(tmp_path: Path):
    """An API in whose log, events and figures there is nothing of the canary when all is over."""
    with overhearing() as overheard, running(tmp_path / "home", max_jobs_per_org=10_000) as api:
        headers = api.key()
        yield api, headers, api.source(headers)
        figures = api.client.get("/metrics", headers=api.key("ops", "ops", ["metrics"]))
        assert figures.status_code == 200
        assert not find_canary(CANARY, figures.content)
        overheard.assert_silent_about(CANARY)


@st.composite
def _damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A real file of which bytes were overwritten, cut out, or put in; under its name or another's."""
    content = bytearray(FILES[draw(st.sampled_from(sorted(FILES)))])
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 64))
        content[at : at + length] = draw(st.binary(max_size=64))
    return draw(st.sampled_from(sorted(FILES))), bytes(content)


@pytest.mark.slow
@settings(max_examples=20)
@given(_damaged())
def test_damaged_uploads_end_clearly(open_api: tuple[Api, dict[str, str], str], upload: tuple[str, bytes]) -> None:
    api, headers, source = open_api
    sent = api.client.post("/api/rag/ingest", data={"dataSourceId": source}, files=[("files", upload)], headers=headers)
    assert sent.status_code in {202, 415, 422}
    assert not find_canary(CANARY, sent.content)
    if sent.status_code == 202:
        job = api.ended(headers, sent.json()["jobId"])
        assert api.query(headers, f"When does the sluice of {CANARY} open?").status_code == 200
        assert job["reason"] != "INTERNAL_ERROR"
        assert not find_canary(CANARY, json.dumps(job))


def _odd(name: str) -> st.SearchStrategy[tuple[str, bytes]]:
    """Anything for a header, or the canary; but not as the id of a request, which the log has as it was chosen."""
    values = st.binary(max_size=200)
    known = st.sampled_from([CANARY.encode(), b"Bearer " + CANARY.encode()])
    return st.tuples(st.just(name), values if name == "x-request-id" else values | known)


@given(st.lists(st.sampled_from(_NAMES).flatmap(_odd), max_size=6))
def test_odd_headers_are_answered(open_api: tuple[Api, dict[str, str], str], odd: list[tuple[str, bytes]]) -> None:
    api, headers, _ = open_api
    own = (
        []
        if any(name == "authorization" for name, _ in odd)
        else [("authorization", headers["Authorization"].encode())]
    )
    body = json.dumps({"query": CANARY}).encode()
    answer = api.client.request("POST", "/api/rag/retrieve", content=body, headers=[*own, *odd])
    assert answer.status_code < 500
    if answer.status_code != 200:
        assert not find_canary(CANARY, answer.content)


@pytest.mark.slow
def test_broken_http_neither_stops_the_server_nor_is_repeated(tmp_path) -> None:
    canary = CANARY.encode()
    post = b"POST /api/rag/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    broken = [
        canary + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01" + canary + b"\r\n\r\n",
        post + b"Content-Length: -1\r\n\r\n" + canary,
        post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + canary,
        post + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n" + canary,
        post + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n" + canary + b"\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + canary + b"\r\n\r\n",
        post + b"X: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST /" + canary + b" HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ]
    with besieged(tmp_path / "home") as server:
        for request in broken:
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
                answer = b""
                try:
                    wire.sendall(request)
                    wire.shutdown(socket.SHUT_WR)
                    while piece := wire.recv(65_536):
                        answer += piece
                except ConnectionError:
                    # It hung up before it had read everything, as it may.
                    pass
            assert not answer.startswith(b"HTTP/1.1 5"), answer[:200]
            assert not find_canary(CANARY, answer)
        with server.client({}) as client:
            assert client.get("/healthz").status_code == 200
    assert not find_canary(CANARY, server.log)
