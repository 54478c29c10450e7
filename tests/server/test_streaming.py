"""Answers as server-sent events: pieces, citations, result; an error before the first piece has a status of its own."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest
from support.api import PARIS, QUESTION, Api, bundled, running

from spanforge.reference.answering import ExtractiveAnswerer
from spanforge.reference.failures import GenerationFailed


def _events(text: str) -> list[tuple[str, object]]:
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def _furnish(api: Api) -> dict[str, str]:
    headers = api.key()
    api.ingest(headers, api.source(headers), {"paris": PARIS})
    return headers


def test_pieces_then_citations_then_the_result(api: Api, spanforge_events) -> None:
    headers = _furnish(api)
    whole = api.query(headers).json()
    spanforge_events.clear()
    answer = api.query(headers, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = _events(answer.text)
    names = [name for name, _ in events]
    assert names == ["token"] * (len(names) - 2) + ["citations", "result"]
    assert "".join(data["text"] for name, data in events if name == "token") == whole["answer"]
    result = events[-1][1]
    assert events[-2][1] == result["citationsUsed"] == whole["citationsUsed"]
    changing = ("sessionId", "latenciesMs")
    assert {k: v for k, v in result.items() if k not in changing} == {
        k: v for k, v in whole.items() if k not in changing
    }
    assert {event.org_id for event in spanforge_events.all} == {"north"}
    (summary,) = spanforge_events.of_type("llm.rag.session")
    assert summary["session_id"] == result["sessionId"]
    assert summary["status"] == "ok"


def test_strict_answers_come_only_when_they_are_verified(api: Api) -> None:
    headers = _furnish(api)
    events = _events(api.query(headers, stream=True, strictMode=True).text)
    assert [name for name, _ in events] == ["citations", "result"]
    refused = api.query(headers, "Which opening did the chess master of France prefer?", stream=True, strictMode=True)
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")


def test_what_fails_before_the_first_piece_has_its_status(api: Api) -> None:
    answer = api.query(api.key(), stream=True)
    assert (answer.status_code, answer.json()["code"]) == (403, "NO_ACCESSIBLE_SOURCES")
    assert api.service.throttle.at_work == 0 or _idle(api)


class _Breaking(ExtractiveAnswerer):
    def stream(self, request):
        yield "Par"
        raise GenerationFailed


class _Endless(ExtractiveAnswerer):
    closed = threading.Event()

    def stream(self, request):
        try:
            while True:
                yield "word "
                time.sleep(0.01)
        finally:
            self.closed.set()


def _idle(api: Api) -> bool:
    deadline = time.monotonic() + 20
    while api.service.throttle.at_work and time.monotonic() < deadline:
        time.sleep(0.01)
    return api.service.throttle.at_work == 0


def test_what_fails_after_it_is_an_event(tmp_path) -> None:
    with running(tmp_path, lambda folder: bundled(folder, answerer=_Breaking())) as api:
        headers = _furnish(api)
        events = _events(api.query(headers, stream=True).text)
        assert [name for name, _ in events] == ["token", "error"]
        assert (events[1][1]["code"], events[1][1]["status"]) == ("GENERATION_FAILED", 502)
        assert QUESTION not in json.dumps(events)
        assert _idle(api)


def test_a_stream_ends_in_time(tmp_path) -> None:
    _Endless.closed.clear()
    with running(tmp_path, lambda folder: bundled(folder, answerer=_Endless()), query_timeout_s=1.0) as api:
        headers = _furnish(api)
        events = _events(api.query(headers, stream=True).text)
        assert {name for name, _ in events[:-1]} == {"token"}
        assert events[-1][1]["code"] == "TIMED_OUT"
        assert _idle(api)
        assert _Endless.closed.wait(5)


@pytest.mark.parametrize("read", [0, 3])
async def test_a_client_that_leaves_ends_the_run(tmp_path, read: int) -> None:
    _Endless.closed.clear()
    with running(tmp_path, lambda folder: bundled(folder, answerer=_Endless())) as api:
        headers = _furnish(api)
        seen = threading.Event()
        body = json.dumps({"query": QUESTION, "stream": True}).encode()
        asked = [{"type": "http.request", "body": body, "more_body": False}]
        sent = []

        async def receive():
            while not asked:
                if len(sent) > read:
                    return {"type": "http.disconnect"}
                await asyncio.sleep(0.01)
            return asked.pop()

        async def send(message):
            sent.append(message)
            seen.set()

        raw = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        raw += [(b"authorization", headers["Authorization"].encode())]
        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"}
        scope |= {"path": "/api/rag/query", "raw_path": b"/api/rag/query", "query_string": b"", "root_path": ""}
        await api.app({**scope, "headers": raw, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}, receive, send)
        for _ in range(500):
            if not api.service.throttle.at_work:
                break
            await asyncio.sleep(0.01)
        assert api.service.throttle.at_work == 0
        assert _Endless.closed.wait(5)
