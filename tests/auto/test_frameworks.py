"""`setup()` traces the retrievers of LangChain and LlamaIndex, the real ones, and `teardown()` puts them back."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from spanforge import auto
from spanforge.testing import capture


@pytest.fixture
def events():
    with capture() as captured:
        yield captured
        auto.teardown()


def _langchain():
    retrievers = pytest.importorskip("langchain_core.retrievers", reason="langchain-core is not installed")
    from langchain_core.documents import Document

    class Fixed(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(page_content="secret text", id="doc-1", metadata={"source": "a.md", "page": 2})]

    return Fixed()


def _llamaindex():
    base = pytest.importorskip("llama_index.core.base.base_retriever", reason="llama-index-core is not installed")
    from llama_index.core.schema import NodeWithScore, TextNode

    class Fixed(base.BaseRetriever):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=TextNode(text="secret text", id_="node-1"), score=0.8)]

    return Fixed()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("make", "call", "acall", "chunk"),
    [
        (_langchain, "invoke", "ainvoke", {"chunk_id": "doc-1", "score": 0.0, "source": "a.md"}),
        (_llamaindex, "retrieve", "aretrieve", {"chunk_id": "node-1", "score": 0.8, "source": ""}),
    ],
    ids=["langchain", "llamaindex"],
)
def test_a_frameworks_retriever_is_traced(make, call, acall, chunk):
    retriever = make()
    with capture() as events:
        patched = auto.setup()
        assert patched == auto.patched_integrations()
        assert auto.setup() == set()
        try:
            getattr(retriever, call)("the query")
            asyncio.run(getattr(retriever, acall)("the query"))
        finally:
            assert auto.teardown() == patched
        getattr(retriever, call)("untraced")

        retrieved = events.of_type("llm.rag.retrieved")
        assert [{name: got["chunks"][0][name] for name in chunk} for got in retrieved] == [chunk, chunk]
        assert len(events.of_type("llm.rag.session")) == 2
        events.assert_no_text("secret text", "the query")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("make", "call"),
    [
        (_langchain, lambda retriever: retriever.invoke(config={"tags": ["t"]}, input="the query")),
        (_langchain, lambda retriever: asyncio.run(retriever.ainvoke(config=None, input="the query"))),
        (_llamaindex, lambda retriever: retriever.retrieve(str_or_query_bundle="the query")),
        (_llamaindex, lambda retriever: asyncio.run(retriever.aretrieve(str_or_query_bundle="the query"))),
    ],
)
def test_the_query_is_found_however_it_is_passed(events, make, call):
    retriever = make()
    auto.setup()
    call(retriever)
    [query] = events.of_type("llm.rag.query")
    assert query["query_hash"] == hashlib.sha256(b"the query").hexdigest()
    assert [len(got["chunks"]) for got in events.of_type("llm.rag.retrieved")] == [1]


def test_setup_tells_what_it_does(events, capsys):
    auto.setup(verbose=True)
    auto.teardown(verbose=True)
    assert "spanforge.auto: langchain_core" in capsys.readouterr().out
