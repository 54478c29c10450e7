"""OpenAI's and Anthropic's clients: events say what the server says of itself, and applications see no difference."""

from __future__ import annotations

import asyncio
import gc
import hashlib
from collections.abc import Generator
from typing import Any

import pytest
from auto.conftest import account, run, settled, told
from support.drawing_server import DrawingServer

from spanforge import auto
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents, capture

# Clients that are let go of unclosed are what these tests are about.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

openai = pytest.importorskip("openai", reason="openai is not installed")
anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed")

ASKED = [{"role": "user", "content": "the question"}]
HELLO: dict[str, Any] = {"model": "m", "messages": ASKED}
CLAUDE: dict[str, Any] = {"model": "c", "max_tokens": 9, "messages": ASKED}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}


class Clients:
    def __init__(self, url: str) -> None:
        self.url = url
        self.openai = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
        self.others: list[Any] = []

    def async_openai(self) -> Any:
        self.others.append(openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="k", max_retries=0))
        return self.others[-1]

    def async_anthropic(self) -> Any:
        self.others.append(anthropic.AsyncAnthropic(base_url=self.url, api_key="k", max_retries=0))
        return self.others[-1]

    def close(self) -> None:
        self.openai.close()
        self.anthropic.close()
        for client in self.others:
            run(client.close)


@pytest.fixture
def clients(server: DrawingServer) -> Generator[Clients]:
    made = Clients(server.url)
    yield made
    made.close()


async def read(stream: Any) -> list[Any]:
    return [piece async for piece in await stream]


async def helper(clients: Clients) -> None:
    async with clients.async_anthropic().messages.stream(**CLAUDE) as stream:
        await stream.get_final_message()


def responses_helper(clients: Clients) -> None:
    with clients.openai.responses.stream(model="m", input="the question") as stream:
        list(stream)


def streaming_response(clients: Clients) -> None:
    with clients.openai.chat.completions.with_streaming_response.create(**HELLO) as response:
        response.parse()


READS: dict[str, Any] = {
    "read": lambda response: response.read(),
    "json": lambda response: response.json(),
    "text": lambda response: response.text(),
    "bytes": lambda response: list(response.iter_bytes(7)),
    "lines": lambda response: list(response.iter_lines()),
    "parsed twice": lambda response: (response.read(), response.parse(), response.parse()),
}


async def all_of(pieces: Any) -> list[Any]:
    return [piece async for piece in pieces]


ASYNC_READS: dict[str, Any] = {
    "read": lambda response: response.read(),
    "json": lambda response: response.json(),
    "bytes": lambda response: all_of(response.iter_bytes(7)),
    "lines": lambda response: all_of(response.iter_lines()),
    "parsed": lambda response: response.parse(),
}
BODIES: dict[str, Any] = {
    "chat": lambda o, _: o.chat.completions.with_streaming_response.create(**HELLO),
    "chat, streamed": lambda o, _: o.chat.completions.with_streaming_response.create(**HELLO, **USAGE),
    "responses, streamed": lambda o, _: o.responses.with_streaming_response.create(model="m", input="q", stream=True),
    "messages": lambda _, a: a.messages.with_streaming_response.create(**CLAUDE),
    "messages, streamed": lambda _, a: a.messages.with_streaming_response.create(**CLAUDE, stream=True),
}


# Events are no JSON, and the client parses them as they come.
OF_WHOLE = {"json", "parsed twice"}


@pytest.mark.parametrize(
    ("body", "read"),
    [(body, read) for body in BODIES for read in READS if not ("streamed" in body and read in OF_WHOLE)],
)
def test_a_body_that_the_application_reads_is_an_answer(
    body: str, read: str, clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    with BODIES[body](clients.openai, clients.anthropic) as response:
        assert READS[read](response)
        # The session ends with the body, not with the block around it.
        assert len(settled(traced, 1)) == 1
    assert told(traced) == account(server)
    (found,) = traced.of_type("llm.rag.generated")
    assert (found["status"], found.get("stream", False)) == ("ok", "streamed" in body)
    assert ("time_to_first_token_ms" in found) is found.get("stream", False)


@pytest.mark.parametrize("read", ASYNC_READS)
@pytest.mark.parametrize("body", ["chat", "messages"])
def test_a_body_that_a_task_reads_is_an_answer(
    body: str, read: str, clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    async def ask() -> None:
        async with BODIES[body](clients.async_openai(), clients.async_anthropic()) as response:
            await ASYNC_READS[read](response)

    run(ask)
    settled(traced, 1)
    assert told(traced) == account(server)
    assert [found["status"] for found in traced.of_type("llm.rag.generated")] == ["ok"]


def until_the_last_line(response: Any) -> None:
    for line in response.iter_lines():
        if line == "data: [DONE]":
            return


def one_line(response: Any) -> None:
    next(response.iter_lines())


@pytest.mark.parametrize(
    ("read", "status"), [(until_the_last_line, "ok"), (one_line, "cancelled"), (lambda _: None, "cancelled")]
)
def test_a_body_is_read_to_the_last_event_or_left(
    read: Any, status: str, clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    # Or the rest has come as soon as the first line is there.
    server.delay = 0.2
    try:
        with BODIES["chat, streamed"](clients.openai, None) as response:
            read(response)
    finally:
        server.delay = 0.0
    # Closed is enough: nobody has to collect it.
    assert len(settled(traced, 1)) == 1
    assert [found["status"] for found in traced.of_type("llm.rag.generated")] == [status]


CALLS: dict[str, Any] = {
    "chat": lambda c: c.openai.chat.completions.create(**HELLO),
    "chat, streamed": lambda c: list(c.openai.chat.completions.create(**HELLO, stream=True)),
    "chat, streamed with usage": lambda c: list(c.openai.chat.completions.create(**HELLO, **USAGE)),
    "chat, raw": lambda c: c.openai.chat.completions.with_raw_response.create(**HELLO).parse(),
    "chat, raw stream": lambda c: list(c.openai.chat.completions.with_raw_response.create(**HELLO, **USAGE).parse()),
    "chat, streaming response": streaming_response,
    "responses": lambda c: c.openai.responses.create(model="m", input="the question"),
    "responses, streamed": lambda c: list(c.openai.responses.create(model="m", input="the question", stream=True)),
    "responses, helper": responses_helper,
    "async chat": lambda c: c.async_openai().chat.completions.create(**HELLO),
    "async chat, streamed": lambda c: read(c.async_openai().chat.completions.create(**HELLO, **USAGE)),
    "messages": lambda c: c.anthropic.messages.create(**CLAUDE),
    "messages, streamed": lambda c: list(c.anthropic.messages.create(**CLAUDE, stream=True)),
    "async messages": lambda c: c.async_anthropic().messages.create(**CLAUDE),
    "async messages, helper": helper,
}


@pytest.mark.parametrize("name", CALLS)
def test_events_say_what_the_server_says(
    name: str, clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    for _ in range(3):
        run(lambda: CALLS[name](clients))
    assert told(traced) == account(server)
    assert len(server.bodies) == len(settled(traced, 3)) == 3
    (first, second, third) = traced.of_type("llm.rag.generated")
    assert first["response_id"] != second["response_id"] != third["response_id"]
    assert {found["status"] for found in (first, second, third)} == {"ok"}
    assert first.get("stream", False) is any(word in name for word in ("streamed", "helper", "raw stream"))
    assert ("time_to_first_token_ms" in first) is first.get("stream", False)
    asked = hashlib.sha256(b"the question").hexdigest()
    assert {query["query_hash"] for query in traced.of_type("llm.rag.query")} == {asked}


def closed(clients: Clients) -> None:
    stream = clients.openai.chat.completions.create(**HELLO, stream=True)
    next(iter(stream))
    stream.close()


def dropped(clients: Clients) -> None:
    next(iter(clients.openai.chat.completions.create(**HELLO, stream=True)))
    # The client's own streams are in cycles.
    gc.collect()


async def closed_async(clients: Clients) -> None:
    stream = await clients.async_openai().chat.completions.create(**HELLO, stream=True)
    await anext(aiter(stream))
    await stream.close()


async def timed_out(clients: Clients) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await clients.async_openai().chat.completions.create(**HELLO)


@pytest.mark.parametrize("leave", [closed, dropped, closed_async, timed_out])
def test_who_stops_reading_cancels(leave: Any, clients: Clients, server: DrawingServer, traced: CapturedEvents) -> None:
    server.delay = 0.3 if leave is timed_out else 0.0
    try:
        run(lambda: leave(clients))
    finally:
        server.delay = 0.0
    (summary,) = settled(traced, 1)
    assert [found["status"] for found in traced.of_type("llm.rag.generated")] == ["cancelled"]
    assert summary["error_count"] == 0


def test_a_failure_is_the_applications_own_and_its_text_is_not_recorded(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    server.fail = 400
    try:
        with pytest.raises(openai.BadRequestError, match="the question"):
            clients.openai.chat.completions.create(**HELLO)
    finally:
        server.fail = None
    settled(traced, 1)
    (found,) = traced.of_type("llm.rag.generated")
    assert (found["status"], found["error_message"]) == ("error", "BadRequestError")
    traced.assert_no_text("the question")


def test_what_the_application_sees_is_the_same(clients: Clients, server: DrawingServer) -> None:
    def seen() -> list[Any]:
        server.bodies.clear()
        with capture(strict=False):
            whole = clients.openai.chat.completions.create(**HELLO)
            stream = clients.openai.chat.completions.create(**HELLO, stream=True)
            kinds = [type(whole), type(stream), type(next(iter(stream)))]
            stream.close()
        return [kinds, list(server.bodies), isinstance(stream, openai.Stream)]

    request = openai._base_client.SyncAPIClient.request
    without = seen()
    auto.setup({"openai"})
    try:
        assert seen() == without
    finally:
        auto.teardown()
    assert openai._base_client.SyncAPIClient.request is request


def test_a_call_belongs_to_the_session_around_it(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    auto.setup(sessions="explicit")
    clients.openai.chat.completions.create(**HELLO)
    assert len(traced) == 0
    with sf_rag.session("another question") as session:
        clients.openai.chat.completions.create(**HELLO)
    assert [event.session_id for event in traced.all] == [session.session_id] * 3
    with auto.paused():
        clients.openai.chat.completions.create(**HELLO)
    assert len(traced.of_type("llm.rag.generated")) == 1


def test_requests_at_once_keep_to_themselves(clients: Clients, server: DrawingServer, traced: CapturedEvents) -> None:
    async def ask() -> None:
        client = clients.async_openai()
        questions = [[{"role": "user", "content": f"question {number}"}] for number in range(40)]
        await asyncio.gather(*(client.chat.completions.create(model="m", messages=asked) for asked in questions))

    run(ask)
    assert len(settled(traced, 40)) == 40
    by_session = {
        event.session_id: event.payload["query_hash"] for event in traced.all if "query_hash" in event.payload
    }
    assert set(by_session.values()) == {hashlib.sha256(f"question {n}".encode()).hexdigest() for n in range(40)}
    key = lambda found: found["response_id"]  # noqa: E731
    assert sorted(told(traced), key=key) == sorted(account(server), key=key)


def test_a_stream_that_is_begun_in_a_task_is_read_in_another(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    async def read() -> None:
        (stream,) = await asyncio.gather(clients.async_openai().chat.completions.create(**HELLO, **USAGE))
        async for _ in stream:
            await asyncio.sleep(0.25)
        await stream.close()

    run(read)
    assert [summary["status"] for summary in settled(traced, 1)] == ["ok"]
    assert told(traced) == account(server)
