"""A question is one query of its session, and what is found is one retrieval, however many instruments see them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest

from spanforge import auto
from spanforge.auto import trace_rag
from spanforge.integrations._runs import Run
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents, capture

ASKED = "which letter?"
HITS = [{"id": "a", "score": 0.9}, {"id": "b", "score": 0.4}]


@pytest.fixture
def events() -> Generator[CapturedEvents]:
    auto.setup({"langchain"})
    with capture() as captured:
        yield captured
    auto.teardown()


@trace_rag
def search(query: str) -> list[Any]:
    return HITS


@trace_rag
async def search_async(query: str) -> list[Any]:
    return HITS


@trace_rag
def search_lazily(query: str) -> Generator[Any]:
    yield from HITS


def by_a_run(query: str) -> None:
    run = Run(query)
    stage = run.stage("retrieval")
    stage.query = query
    run.asked(query)
    stage.finish(HITS)
    run.end()


def by_a_retriever(query: str) -> None:
    retriever(lambda _: HITS).invoke(query)


def retriever(find: Callable[[str], Any]) -> Any:
    retrievers = pytest.importorskip("langchain_core.retrievers", reason="langchain-core is not installed")
    from langchain_core.documents import Document

    class Found(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            return [Document("a text", id=hit["id"]) for hit in find(query)]

    return Found()


ENTRIES: dict[str, Callable[[str], Any]] = {
    "decorator": search,
    "decorated coroutine": lambda query: asyncio.run(search_async(query)),
    "decorated generator": lambda query: list(search_lazily(query)),
    "run of a framework": by_a_run,
    "retriever": by_a_retriever,
}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_question_is_recorded_once_in_its_session(name: str, events: CapturedEvents) -> None:
    with sf_rag.session(ASKED):
        for question in (ASKED, "another wording", ASKED):
            ENTRIES[name](question)
    queries = [query["query_hash"] for query in events.of_type("llm.rag.query")]
    assert len(queries) == len(set(queries)) == 2
    # Each retrieval says whose it is all the same.
    assert [found["query_hash"] for found in events.of_type("llm.rag.retrieved")] == [*queries, queries[0]]


def test_a_decorated_retriever_in_a_run_is_part_of_it(events: CapturedEvents) -> None:
    runnables = pytest.importorskip("langchain_core.runnables", reason="langchain-core is not installed")
    from langchain_core.language_models import FakeListChatModel

    chain = runnables.RunnableLambda(lambda question: str(search(question))) | FakeListChatModel(responses=["Yes."])
    chain.invoke(ASKED)
    assert len({event.session_id for event in events.all}) == 1
    kinds = [event.event_type.rpartition(".")[2] for event in events.all]
    assert kinds == ["query", "retrieved", "generated", "session"]
    assert events.of_type("llm.rag.generated")[0]["chunk_ids_used"] == ["a", "b"]


@pytest.mark.parametrize("is_outer", [True, False], ids=["around a retriever", "within a retriever"])
def test_a_decorator_and_a_framework_record_one_retrieval(is_outer: bool, events: CapturedEvents) -> None:
    if is_outer:
        trace_rag(retriever(lambda _: HITS).invoke)(ASKED)
    else:
        retriever(search).invoke(ASKED)
    assert [len(found["chunks"]) for found in events.of_type("llm.rag.retrieved")] == [2]
    assert len(events.of_type("llm.rag.query")) == 1
