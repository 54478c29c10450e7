"""LangChain's vector stores, asked directly or by a retriever: one retrieval, with the scores that the store gave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest

from spanforge import auto
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents, capture

stores = pytest.importorskip("langchain_core.vectorstores", reason="langchain-core is not installed")

ASKED = "which letter?"
IDS = ["a", "b", "c"]


@pytest.fixture
def events() -> Generator[CapturedEvents]:
    auto.setup({"langchain"})
    with capture() as captured:
        yield captured
    auto.teardown()


@pytest.fixture(scope="module")
def store() -> Any:
    from langchain_core.embeddings import DeterministicFakeEmbedding

    made = stores.InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    made.add_texts(["secret one", "secret two", "secret three"], ids=IDS)
    return made


CALLS: dict[str, Callable[[Any], Any]] = {
    "documents": lambda store: store.similarity_search(ASKED, 2),
    "with scores": lambda store: store.similarity_search_with_score(query=ASKED, k=2),
    "by kind": lambda store: store.search(ASKED, "similarity", k=2),
    "async": lambda store: asyncio.run(store.asimilarity_search(ASKED, 2)),
    "async with scores": lambda store: asyncio.run(store.asimilarity_search_with_score(ASKED, 2)),
    "retriever": lambda store: store.as_retriever(search_kwargs={"k": 2}).invoke(ASKED),
    "retriever, async": lambda store: asyncio.run(store.as_retriever(search_kwargs={"k": 2}).ainvoke(ASKED)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_search_is_one_retrieval_with_its_scores(name: str, store: Any, events: CapturedEvents) -> None:
    found = CALLS[name](store)
    (query,), (retrieved,) = events.of_type("llm.rag.query"), events.of_type("llm.rag.retrieved")
    documents = [one[0] if isinstance(one, tuple) else one for one in found]
    assert [chunk["chunk_id"] for chunk in retrieved["chunks"]] == [document.id for document in documents]
    first, second = (chunk["score"] for chunk in retrieved["chunks"])
    assert 1 >= first >= second >= 0
    assert query["top_k"] == 2
    events.assert_no_text(ASKED, "secret")


def test_a_search_by_vector_asks_no_question(store: Any, events: CapturedEvents) -> None:
    with sf_rag.session(ASKED):
        store.similarity_search_by_vector([0.1, 0.2, 0.3, 0.4], k=1)
    assert len(events.of_type("llm.rag.query")) == len(events.of_type("llm.rag.retrieved")) == 1


def test_a_store_that_is_defined_later_is_seen_and_let_go_of(events: CapturedEvents) -> None:
    class Later(stores.InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            raise LookupError(query)

    class Plain(stores.VectorStore):
        pass

    assert Plain.__abstractmethods__ == {"similarity_search", "from_texts"}
    with pytest.raises(LookupError) as raised:
        Later(None).similarity_search(ASKED)
    assert raised.value.args == (ASKED,)
    assert events.of_type("llm.rag.retrieved")[0]["error_message"] == "LookupError"
    events.assert_no_text(ASKED)
    auto.teardown()
    assert not hasattr(Later.similarity_search, "__wrapped__")
    assert "__init_subclass__" not in vars(stores.VectorStore)


def test_what_is_not_wanted_is_not_recorded(store: Any, events: CapturedEvents) -> None:
    with auto.paused():
        store.similarity_search(ASKED)
    auto.setup(sessions="explicit")
    store.similarity_search(ASKED)
    assert len(events) == 0
