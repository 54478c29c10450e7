"""LangChain's roots that are no chain: several prompts at once, retrievers, streams that tasks share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from auto.conftest import account, run, settled, told
from support.drawing_server import DrawingServer

from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents

pytestmark = pytest.mark.filterwarnings("ignore")

pytest.importorskip("langchain_core", reason="langchain-core is not installed")
chat = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.messages import HumanMessage  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.runnables import RunnableGenerator, RunnableLambda  # noqa: E402

PROMPTS = [[HumanMessage(text)] for text in ("one", "two", "three")]


def model(server: DrawingServer) -> Any:
    return chat.ChatOpenAI(model="m", base_url=f"{server.url}/v1", api_key="k", max_retries=0)


class Letters(BaseRetriever):
    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [Document(query, id="a")]


@pytest.mark.parametrize("method", ["generate", "agenerate"])
def test_each_of_several_prompts_is_one_generation(method: str, server: DrawingServer, traced: CapturedEvents) -> None:
    llm = model(server)
    run(lambda: getattr(llm, method)(PROMPTS))
    assert len(settled(traced, len(PROMPTS))) == len(PROMPTS)
    by_id: Any = {"key": lambda found: found["response_id"]}
    assert sorted(told(traced), **by_id) == sorted(account(server), **by_id)


def test_what_a_retriever_does_within_is_of_its_run(server: DrawingServer, traced: CapturedEvents) -> None:
    llm = model(server).root_client

    class Rewriting(Letters):
        def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            llm.chat.completions.create(model="m", messages=[{"role": "user", "content": query}])
            with sf_rag.rerank(model="own") as rerank:
                rerank.record([{"id": "a", "score": 0.5}])
            return [Document(query, id="a")]

    Rewriting().invoke("which letter?")
    (summary,) = settled(traced, 1)
    counts = summary["retrieval_count"], summary["generation_count"], summary["rerank_count"]
    assert counts == (1, 1, 1)


@pytest.mark.parametrize("is_root", [True, False])
def test_retrievers_that_one_asks_without_callbacks_are_of_its_run(is_root: bool, traced: CapturedEvents) -> None:
    class Both(Letters):
        def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            return [*Letters().invoke(query), *Letters().invoke(f"{query} two")]

    (Both() if is_root else RunnableLambda(str) | Both()).invoke("which letter?")
    (summary,) = settled(traced, 1)
    assert (summary["retrieval_count"], summary["rerank_count"]) == (2, 1)


def two_requests(server: DrawingServer, kind: str) -> Any:
    """Return a model of the application's own that asks twice and searches once, and how it is called."""
    from langchain_core.language_models import LLM, BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    client = model(server).root_client

    def ask() -> str:
        for _ in range(2):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "words"}])
        return str(Letters().invoke("words"))

    class Completing(LLM):
        _llm_type = "own"

        def _call(self, prompt: str, stop: Any = None, run_manager: Any = None, **_: Any) -> str:
            return ask()

    class Chatting(BaseChatModel):
        _llm_type = "own"

        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(ask()))])

    own = Completing() if kind == "completing" else Chatting()
    return {"streamed": lambda: list(own.stream("which letter?")), "async": lambda: own.ainvoke("which letter?")}.get(
        kind, lambda: own.invoke("which letter?")
    )


@pytest.mark.parametrize("kind", ["chat", "completing", "streamed", "async"])
def test_a_model_that_asks_twice_is_one_run(kind: str, server: DrawingServer, traced: CapturedEvents) -> None:
    call = two_requests(server, kind)
    run(call)
    run(call)
    model(server).root_client.chat.completions.create(model="m", messages=[{"role": "user", "content": "alone"}])
    ended = settled(traced, 3)
    counts = [(summary["generation_count"], summary["retrieval_count"]) for summary in ended]
    assert counts == [(2, 1), (2, 1), (1, 0)]
    key = lambda found: found["response_id"]  # noqa: E731
    assert sorted(told(traced), key=key) == sorted(account(server), key=key)


def test_a_call_between_two_pieces_of_a_stream_is_its_consumers(server: DrawingServer, traced: CapturedEvents) -> None:
    llm = model(server)
    pieces = llm.stream("which letter?")
    next(pieces)
    llm.root_client.chat.completions.create(model="m", messages=[{"role": "user", "content": "alone"}])
    Letters().invoke("alone too")
    list(pieces)
    counts = [(one["generation_count"], one["retrieval_count"]) for one in settled(traced, 3)]
    assert sorted(counts) == [(0, 1), (1, 0), (1, 0)]


def test_a_stream_of_which_a_task_reads_each_piece_is_one_run(traced: CapturedEvents) -> None:
    async def answer(_: AsyncIterator[Any]) -> AsyncIterator[str]:
        yield "first"
        await Letters().ainvoke("one")
        yield "second"
        await Letters().ainvoke("two")

    async def read() -> None:
        pieces = aiter(RunnableGenerator(answer).astream("which letter?"))
        while await asyncio.ensure_future(anext(pieces, None)):
            pass

    run(read)
    (summary,) = settled(traced, 1)
    assert summary["retrieval_count"] == 2


def test_a_retriever_that_is_given_up_in_a_task_that_goes_on_ends_its_session(traced: CapturedEvents) -> None:
    class Slow(Letters):
        async def _aget_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            await asyncio.sleep(60)
            return []

    async def give_up() -> int:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await Slow().ainvoke("which letter?")
        return len(traced.of_type("llm.rag.session"))

    assert run(give_up) == 1


def test_all_prompts_of_a_batch_that_is_given_up_are_cancelled(traced: CapturedEvents) -> None:
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import HumanMessage

    class Slow(FakeListChatModel):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(60)

    async def given_up() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await Slow(responses=["Yes."]).agenerate([[HumanMessage(f"{number}?")] for number in range(3)])
        # The task goes on.
        await asyncio.sleep(0.1)

    asyncio.run(given_up())
    assert len(settled(traced, 3)) == 3
    assert [event["status"] for event in traced.of_type("llm.rag.generated")] == ["cancelled"] * 3


def test_an_answer_out_of_the_cache_has_no_tokens_and_costs_nothing(
    server: DrawingServer, traced: CapturedEvents
) -> None:
    from langchain_core.caches import InMemoryCache

    asked = chat.ChatOpenAI(
        model="m", base_url=f"{server.url}/v1", api_key="k", max_retries=0, cache=InMemoryCache(), temperature=0
    )
    answers = [asked.invoke("the same?").content for _ in range(2)]
    settled(traced, 2)
    assert answers[0] == answers[1]
    (said,) = account(server)
    called, cached = told(traced)
    assert called == said
    assert {name: value for name, value in cached.items() if "token" in name and value is not None} == {}
    assert [found.get("cost_usd") for found in traced.of_type("llm.rag.generated")] == [None, 0.0]
