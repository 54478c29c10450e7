"""An answer that is read after the block of its session: the session ends when it has been."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import pytest
from auto.conftest import account, run, settled, told
from auto.test_clients import CLAUDE, HELLO, USAGE, Clients
from auto.test_frameworks import ASKED, langchain, llama_index
from support.drawing_server import DrawingServer

from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def clients(server: DrawingServer) -> Generator[Clients]:
    made = Clients(server.url)
    yield made
    made.close()


def begun(pieces: Any) -> Any:
    """Return a generator whose first piece was read: before that it has called nobody."""
    next(pieces)
    return pieces


STREAMS: dict[str, Callable[[Clients], Any]] = {
    "OpenAI": lambda c: c.openai.chat.completions.create(**HELLO, **USAGE),
    "OpenAI, raw": lambda c: c.openai.chat.completions.with_raw_response.create(**HELLO, **USAGE).parse(),
    "Anthropic": lambda c: c.anthropic.messages.create(**CLAUDE, stream=True),
    "LangChain": lambda c: begun(langchain(c.url).stream(ASKED)),
    "LlamaIndex": lambda c: llama_index(c.url, streaming=True).query(ASKED).response_gen,
}
streams = pytest.mark.parametrize("name", STREAMS)


def kinds(events: CapturedEvents) -> list[str]:
    return [event.event_type.rpartition(".")[2] for event in events.all]


@streams
def test_the_session_ends_when_the_answer_has_been_read(
    name: str, clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    orphans = sf_rag.get_status().orphans
    with sf_rag.session(ASKED) as session:
        sf_rag.trace_retrieval(chunks=[{"chunk_id": "a", "score": 0.5, "source": "s"}])
        pieces = STREAMS[name](clients)
    assert session.summary is not None
    assert (session.summary.generation_count, session.summary.ended_at) == (0, None)
    assert "session" not in kinds(traced)
    list(pieces)
    (ended,) = settled(traced, 1)
    assert (ended["generation_count"], ended["status"], ended["end_reason"]) == (1, "ok", "ended")
    assert told(traced) == account(server)
    assert kinds(traced)[-2:] == ["generated", "session"]
    assert traced.of_type("llm.rag.generated")[0]["chunk_ids_used"]
    assert sf_rag.get_status().orphans == orphans


@streams
def test_an_answer_that_nobody_reads_ends_its_session_as_it_goes(
    name: str, clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    with sf_rag.session(ASKED):
        pieces = STREAMS[name](clients)
    del pieces
    gc.collect()
    (ended,) = settled(traced, 1)
    assert ended["error_count"] == 0
    assert {found["status"] for found in traced.of_type("llm.rag.generated")} <= {"cancelled"}


def test_a_task_reads_what_another_asked_for(clients: Clients, server: DrawingServer, traced: CapturedEvents) -> None:
    async def ask() -> Any:
        async with sf_rag.session(ASKED):
            return await clients.async_openai().chat.completions.create(**HELLO, **USAGE)

    async def answer() -> list[Any]:
        return [piece async for piece in await ask()]

    run(answer)
    (ended,) = settled(traced, 1)
    assert (ended["generation_count"], ended["status"]) == (1, "ok")


def test_an_error_of_the_block_is_the_sessions(clients: Clients, server: DrawingServer, traced: CapturedEvents) -> None:
    pieces: list[Any] = []
    with suppress(LookupError), sf_rag.session(ASKED):
        pieces.append(STREAMS["OpenAI"](clients))
        raise LookupError
    list(pieces.pop())
    (ended,) = settled(traced, 1)
    assert (ended["status"], ended["error_type"], ended["generation_count"]) == ("error", "LookupError", 1)


def test_a_session_waits_for_all_of_its_answers(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    with sf_rag.session(ASKED):
        first, second = STREAMS["OpenAI"](clients), STREAMS["Anthropic"](clients)
    list(second)
    assert "session" not in kinds(traced)
    list(first)
    (ended,) = settled(traced, 1)
    assert ended["generation_count"] == 2


def test_a_session_that_is_entered_again_ends_with_its_last_block(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    with sf_rag.session(ASKED, session_id="mine"):
        pieces = STREAMS["OpenAI"](clients)
    with sf_rag.session(ASKED, session_id="mine"):
        list(pieces)
        assert "session" not in kinds(traced)
    (ended,) = settled(traced, 1)
    assert ended["generation_count"] == 1


def test_who_ends_a_session_does_not_wait_and_the_answer_is_counted(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    before = sf_rag.get_status().orphans
    with sf_rag.session(ASKED):
        pieces = STREAMS["OpenAI"](clients)
        assert sf_rag.end_session().generation_count == 0
    list(pieces)
    assert kinds(traced) == ["query", "session", "generated"]
    assert sf_rag.get_status().orphans == before + 1
