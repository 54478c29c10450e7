"""Limits: of bodies, nesting, hosts, rates, work at hand and time. What is over one is refused with its code."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from support.api import LOOPBACK, PARIS, Api, bundled, running
from support.chat_server import chat_server
from support.serving import serving

from spanforge.reference import Document, Pipeline, User
from spanforge.sdk import ServerSettings
from spanforge.server import create_app
from spanforge.server.bodies import nested_deeper
from spanforge.server.middleware.limits import is_loopback
from spanforge.server.middleware.throttle import Throttle
from spanforge.server.problems import Problem

KEEP = {"Content-Type": "application/json"}


def test_a_long_body_is_refused_whether_it_says_so_or_not(tmp_path) -> None:
    with running(tmp_path, max_body_bytes=2_000, max_upload_bytes=4_000) as api:
        headers = {**api.key(), **KEEP}
        body = json.dumps({"query": "x" * 2_000}).encode()
        told = api.client.post("/api/rag/query", content=body, headers=headers)
        untold = api.client.post("/api/rag/query", content=iter([body[:1_500], body[1_500:]]), headers=headers)
        for answer in (told, untold):
            assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE")
        fits = api.client.post("/api/rag/query", content=json.dumps({"query": "x" * 1_900}), headers=headers)
        assert fits.status_code == 403  # read, and there is no source


def test_an_upload_may_be_longer_but_not_without_measure(tmp_path) -> None:
    with running(tmp_path, max_body_bytes=2_000, max_upload_bytes=4_000) as api:
        headers = api.key()
        fields = {"dataSourceId": api.source(headers)}
        for size, status in ((3_000, 202), (5_000, 413)):
            files = [("files", ("a.md", b"word " * (size // 5)))]
            assert api.client.post("/api/rag/ingest", data=fields, files=files, headers=headers).status_code == status
        # No other route takes one.
        files = [("files", ("a.md", b"word " * 600))]
        assert api.client.post("/api/rag/query", data=fields, files=files, headers=headers).status_code in {413, 415}


def test_what_costs_too_much_to_read_ends_its_own_job(api: Api) -> None:
    headers = api.key()
    source = api.source(headers)
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("word/document.xml", bytes(300 << 20))
        bomb = file.getvalue()
    files = [("files", ("bomb.docx", bomb))]
    sent = api.client.post("/api/rag/ingest", data={"dataSourceId": source}, files=files, headers=headers)
    assert sent.status_code == 202, sent.text
    ended = api.ended(headers, sent.json()["jobId"])
    assert (ended["status"], ended["reason"], ended["indexed"]) == ("failed", "PARSE_ERROR", 0)
    assert api.ingest(headers, source, {"paris": PARIS})["status"] == "completed"


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""])
def test_other_media_types_are_refused(api: Api, media: str) -> None:
    headers = {**api.key(), "Content-Type": media}
    for path in ("query", "retrieve", "sources", "ingest"):
        answer = api.client.post(f"/api/rag/{path}", content=b'{"query": "a"}', headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_deep_nesting_is_refused(tmp_path) -> None:
    with running(tmp_path, max_json_depth=8) as api:
        headers = api.key()
        source = api.source(headers)
        for depth, status in ((3, 202), (6, 422), (60, 422)):
            metadata = {"a": json.loads("[" * depth + "]" * depth)}
            document = {"documentId": "a", "text": PARIS, "metadata": metadata}
            body = {"dataSourceId": source, "documents": [document]}
            assert api.client.post("/api/rag/ingest", json=body, headers=headers).status_code == status


_JSON = st.recursive(
    st.text(st.sampled_from('ab"\\[]{}'), max_size=6) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('x"\\[', max_size=3), inner, max_size=3),
    max_leaves=20,
)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


@given(_JSON, st.integers(0, 6))
def test_depth_is_counted_outside_of_texts(value, limit: int) -> None:
    assert nested_deeper(json.dumps(value).encode(), limit) is (_depth(value) > limit)


def test_counting_takes_time_by_length_alone() -> None:
    def spent(content: bytes) -> float:
        started = time.perf_counter()
        nested_deeper(content, 4)
        return time.perf_counter() - started

    hostile = b"[[[[" + b'"' + b'\\"' * 200_000 + b"["
    half = spent(hostile[: len(hostile) // 2])
    assert spent(hostile) < max(20 * half, 0.5)


def test_other_hosts_are_refused(api: Api) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "[::1", "localhost.evil.example"):
        answer = api.client.get("/healthz", headers={"Host": host})
        assert (answer.status_code, answer.json()["code"]) == (421, "WRONG_HOST"), host
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000"):
        assert api.client.get("/healthz", headers={"Host": host}).status_code == 200, host


def test_hosts_may_be_named(tmp_path) -> None:
    with running(tmp_path, allowed_hosts="rag.example", host="0.0.0.0") as api:  # noqa: S104  nothing is bound
        assert api.client.get("/healthz", headers={"Host": "rag.example:443"}).status_code == 200
        assert api.client.get("/healthz").status_code == 421


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),  # noqa: S104  a name
        ("::", False),
        ("a.b", False),
    ],
)
def test_loopback(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


def test_there_is_no_cors(api: Api) -> None:
    answer = api.client.options(
        "/api/rag/query", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_rate_is_each_organisations_own(tmp_path) -> None:
    with running(tmp_path, requests_per_minute=6, burst=3) as api:
        ann, colleague, bob = api.key(), api.key("cleo"), api.key("bob", "south")
        got = [api.client.get("/api/rag/sources", headers=headers) for headers in (ann, colleague, ann, ann, colleague)]
        assert [answer.status_code for answer in got] == [200, 200, 200, 429, 429]
        assert got[3].json()["code"] == "RATE_LIMITED"
        assert 1 <= int(got[3].headers["retry-after"]) <= 10
        assert api.client.get("/api/rag/sources", headers=bob).status_code == 200
        assert api.client.get("/healthz").status_code == 200


async def test_who_asks_too_much_waits_for_being_told_so_and_nobody_else(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("spanforge.server.middleware.requests._REFUSAL_S", 3_600)
    with running(tmp_path, requests_per_minute=6, burst=1) as api:
        ann, bob = api.key(), api.key("bob", "south")
        assert api.client.get("/api/rag/sources", headers=ann).status_code == 200
        async with httpx.AsyncClient(transport=httpx.ASGITransport(api.app), base_url=LOOPBACK) as client:
            refused = asyncio.create_task(client.get("/api/rag/sources", headers=ann))
            done, _ = await asyncio.wait({refused}, timeout=0.5)
            assert (await client.get("/api/rag/sources", headers=bob)).status_code == 200
            assert not done
            refused.cancel()


@given(st.lists(st.sampled_from(["enter", "leave"]), max_size=40))
def test_work_at_hand_never_exceeds_its_limits(steps: list[str]) -> None:
    throttle = Throttle(per_minute=60, burst=1, at_once=5, at_once_per_org=3)
    held = {"north": 0, "south": 0}
    for number, step in enumerate(steps):
        org = ("north", "south")[number % 2]
        if step == "leave":
            if held[org]:
                throttle.leave(org)
                held[org] -= 1
            continue
        if held[org] >= min(3, 5 - sum(held.values())):
            with pytest.raises(Problem) as refused:
                throttle.enter(org)
            assert refused.value.status == (429 if held[org] else 503)
        else:
            throttle.enter(org)
            held[org] += 1
    assert throttle.at_work == sum(held.values())


def test_two_greedy_parties_leave_a_place_to_a_third() -> None:
    throttle = Throttle(per_minute=60, burst=1, at_once=32, at_once_per_org=16)
    for org in ("north", "south"):
        with suppress(Problem):
            for _ in range(32):
                throttle.enter(org)
    throttle.enter("east")


class _Slow(Pipeline):
    """Answers when it is let."""

    gate = threading.Event()

    def ask(self, question, **options):
        self.gate.wait(30)
        return super().ask(question, **options)


@pytest.fixture
def gate():
    _Slow.gate.clear()
    yield _Slow.gate
    _Slow.gate.set()


def test_too_much_at_once(tmp_path, gate) -> None:
    make = lambda folder: _Slow(folder, embedder=None)  # noqa: E731  short
    with running(tmp_path, make, max_concurrent=2, max_concurrent_per_org=1) as api, ThreadPoolExecutor(3) as pool:
        keys = [api.key(org=org) for org in ("north", "south", "east")]
        for headers in keys[:2]:
            api.source(headers)
        asked = [pool.submit(api.query, headers) for headers in keys[:2]]
        deadline = time.monotonic() + 20
        while api.service.throttle.at_work < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        same, other = api.query(keys[0]), api.query(keys[2])
        assert (same.status_code, same.json()["code"]) == (429, "TOO_MANY_AT_ONCE")
        assert (other.status_code, other.json()["code"]) == (503, "OVERLOADED")
        assert {"retry-after"} <= set(same.headers) & set(other.headers)
        gate.set()
        assert [one.result().status_code for one in asked] == [200, 200]
        assert api.service.throttle.at_work == 0
        assert api.query(keys[0]).status_code == 200


def test_what_takes_too_long_is_504_and_keeps_its_place_until_it_is_done(tmp_path, gate) -> None:
    make = lambda folder: _Slow(folder, embedder=None)  # noqa: E731  short
    with running(tmp_path, make, query_timeout_s=0.5, max_concurrent_per_org=1) as api:
        headers = api.key()
        with api.service.tenants.use("north"):
            pass  # opened before the clock runs
        late = api.query(headers)
        assert (late.status_code, late.json()["code"]) == (504, "TIMED_OUT")
        assert api.query(headers).status_code == 429
        gate.set()
        deadline = time.monotonic() + 20
        while api.service.throttle.at_work and time.monotonic() < deadline:
            time.sleep(0.01)
        assert api.client.get("/api/rag/sources", headers=headers).status_code == 200


@pytest.mark.slow
def test_a_slow_body_is_given_up(tmp_path) -> None:
    with running(tmp_path / "keys") as api:
        headers = api.key()
    with (
        serving(tmp_path / "keys", SPANFORGE_SERVER_BODY_TIMEOUT_S="0.3") as port,
        socket.create_connection(("127.0.0.1", port), 20) as line,
    ):
        head = f"POST /api/rag/query HTTP/1.1\r\nHost: localhost\r\nAuthorization: {headers['Authorization']}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode())
        answer = b"".join(iter(lambda: line.recv(10_000), b""))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"BODY_TIMEOUT" in answer


def test_jobs_that_wait_are_few(tmp_path) -> None:
    with running(tmp_path, bundled, max_jobs_per_org=1, ingest_workers=1) as api:
        headers, other = api.key(), api.key("bob", "south")
        source, elsewhere = api.source(headers), api.source(other)
        ann, cut = User(user_id="ann", org_id="north"), {"chunk_size": 512, "chunk_overlap": 50}
        with api.service.tenants.use("north") as tenant, tenant.pipeline.writing:
            # While we hold the turn to write, the job cannot end.
            first = api.service.jobs.submit(tenant, ann, source, [Document(document_id="a", text=PARIS)], cut)
            with pytest.raises(Problem) as refused:
                api.service.jobs.submit(tenant, ann, source, [Document(document_id="b", text=PARIS)], cut)
            assert (refused.value.status, refused.value.code) == (429, "TOO_MANY_JOBS")
        assert api.ended(headers, first.job_id)["status"] == "completed"
        assert api.ingest(other, elsewhere, {"a": PARIS})["status"] == "completed"
        assert api.ingest(headers, source, {"b": PARIS})["status"] == "completed"


async def test_a_client_that_leaves_while_it_sends_is_no_error(api: Api, capsys) -> None:
    headers = api.key()["Authorization"].encode()
    messages = [{"type": "http.request", "body": b'{"query": ', "more_body": True}, {"type": "http.disconnect"}]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    raw = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"authorization", headers)]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"}
    scope |= {"path": "/api/rag/query", "raw_path": b"/api/rag/query", "query_string": b"", "root_path": ""}
    await api.app({**scope, "headers": raw, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}, receive, send)
    assert sent == []
    assert "CLIENT_GONE" in capsys.readouterr().out


def test_uploads_that_arrive_are_counted(tmp_path) -> None:
    with running(tmp_path, max_concurrent_per_org=1) as api:
        headers, other = api.key(), api.key("bob", "south")
        source, elsewhere = api.source(headers), api.source(other)
        with api.service.uploads.working("north"):
            refused = api.send(headers, source, {"a": PARIS})
            assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_AT_ONCE")
            assert api.ingest(other, elsewhere, {"a": PARIS})["status"] == "completed"
        assert api.ingest(headers, source, {"a": PARIS})["status"] == "completed"


@pytest.mark.slow
def test_questions_that_wait_for_a_model_wait_side_by_side(tmp_path) -> None:
    asked = 2 * max(2, os.cpu_count() or 1)
    together = threading.Barrier(asked)

    def reply(_: object) -> str:
        together.wait(60)  # nobody is answered before all have asked
        return "Paris [1]"

    with chat_server(reply) as model:
        settings = {"home": tmp_path, "model": "any", "base_url": f"{model.url}/v1", "max_concurrent": 4 * asked}
        app = create_app(ServerSettings.load(settings))
        with TestClient(app, base_url=LOOPBACK) as client, ThreadPoolExecutor(asked) as pool:
            api = Api(app, client, tmp_path)
            headers = api.key()
            api.ingest(headers, api.source(headers), {"paris": PARIS})
            answers = list(pool.map(lambda _: api.query(headers), range(asked)))
    assert [answer.json()["answer"] for answer in answers] == ["Paris [1]"] * asked
