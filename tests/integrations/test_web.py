"""Requests of web applications: headers in, who asks, and the end of what a request joined, streamed or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from spanforge.exceptions import UnknownSessionError
from spanforge.integrations.web import AsgiMiddleware, WsgiMiddleware
from spanforge.sdk import sf_rag
from spanforge.sdk.propagation import inject
from spanforge.testing import CapturedEvents, capture

SESSION = "of-another-service"


def who(told: Any) -> dict[str, str]:
    return {"actor_id": told["actor"], "place": "web"}


def headers() -> dict[str, str]:
    made: dict[str, str] = {}
    inject(made, SESSION)
    return made


def generate() -> None:
    sf_rag.trace_generation(None, "m")


async def by_asgi(fail: bool, actor: Any) -> list[bytes]:
    starlette = pytest.importorskip("starlette.applications", reason="starlette is not installed")
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        assert sf_rag.current_session_id() == SESSION
        generate()
        if fail:
            raise KeyError
        yield b"two"

    async def answer(_request: Any) -> Any:
        return StreamingResponse(pieces())

    app = AsgiMiddleware(starlette.Starlette(routes=[Route("/", answer)]), who)
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    async def receive() -> Any:
        return await asyncio.Future()

    pairs = [(name.encode(), value.encode()) for name, value in headers().items()]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": pairs, "actor": actor}
    await app(scope, receive, send)
    return sent


def by_wsgi(fail: bool, actor: Any) -> list[bytes]:
    def pieces() -> Iterator[bytes]:
        yield b"one"
        assert sf_rag.current_session_id() == SESSION
        generate()
        if fail:
            raise KeyError
        yield b"two"

    def app(_environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return pieces()

    environ: dict[str, Any] = {f"HTTP_{name.upper()}": value for name, value in headers().items()} | {
        "actor": actor,
        "QUERY_STRING": "",
    }
    setup_testing_defaults(environ)
    body: Any = validator(WsgiMiddleware(app, who))(environ, lambda *_: lambda _: None)
    try:
        found = []
        for piece in body:
            found.append(piece)
            assert sf_rag.current_session_id() is None
        return found
    finally:
        body.close()


def ask(call: Callable[..., Any], fail: bool = False, actor: Any = "someone") -> list[bytes]:
    return asyncio.run(by_asgi(fail, actor)) if call is by_asgi else by_wsgi(fail, actor)


@pytest.fixture
def events() -> Iterator[CapturedEvents]:
    with capture(strict=False) as captured:
        yield captured


@pytest.mark.parametrize("call", [by_asgi, by_wsgi])
def test_a_streamed_answer_is_part_of_the_session_to_its_end(call: Any, events: CapturedEvents) -> None:
    assert [piece for piece in ask(call) if piece] == [b"one", b"two"]
    generated, ended = events.all
    assert generated.session_id == ended.session_id == SESSION
    assert (generated.actor_id, generated.tags["place"]) == ("someone", "web")
    assert ended.payload["end_reason"] == "ended"
    assert sf_rag.current_session_id() is None


@pytest.mark.parametrize("call", [by_asgi, by_wsgi])
def test_a_failing_answer_fails_as_before_and_ends_its_session(call: Any, events: CapturedEvents) -> None:
    with pytest.raises(KeyError):
        ask(call, fail=True)
    assert len(events.of_type("llm.rag.session")) == 1


@pytest.mark.parametrize("call", [by_asgi, by_wsgi])
@pytest.mark.parametrize(
    "tell",
    [lambda told: told["no such key"], lambda _: {1: "x"}, lambda _: ["actor"], lambda _: 5, lambda _: None, "no call"],
    ids=["raises", "odd names", "list", "number", "nothing", "text"],
)
def test_who_asks_cannot_break_an_answer(tell: Any, call: Any, events: CapturedEvents) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "who", tell)
        assert len([piece for piece in ask(call) if piece]) == 2
    assert len(events.of_type("llm.rag.session")) == 1


def test_a_session_that_is_forgotten_before_its_request_ends_costs_nothing() -> None:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        sf_rag.end_session(SESSION)
        for number in range(200):  # few are forgotten at once
            sf_rag.end_session(sf_rag.trace_query("another", session_id=f"another-{number}"))

    pairs = [(name.encode(), value.encode()) for name, value in headers().items()]
    with capture(strict=False, retained_sessions=1):
        asyncio.run(AsgiMiddleware(app)({"type": "http", "headers": pairs}, None, None))
        with pytest.raises(UnknownSessionError):
            sf_rag.end_session(SESSION)
