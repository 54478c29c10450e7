"""LangChain, LlamaIndex and Haystack, the real ones: a whole run is one session, as the server accounts for it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import hashlib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from auto.conftest import FIELDS, account, run, settled, told
from support.drawing_server import DrawingServer

from spanforge import auto
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents, capture

pytestmark = pytest.mark.filterwarnings("ignore")

ASKED = "which letter?"
DIGEST = hashlib.sha256(ASKED.encode()).hexdigest()
TEXTS = {"a": "secret text one", "b": "secret text two", "c": "secret text three"}


@functools.cache
def langchain(url: str) -> Any:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    chat = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_texts(list(TEXTS.values()), ids=list(TEXTS))
    model = chat.ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="k", max_retries=0, stream_usage=True)
    prompt = ChatPromptTemplate.from_template("{documents} {question}")
    retriever = store.as_retriever(search_kwargs={"k": 2})
    return {"documents": retriever, "question": RunnablePassthrough()} | prompt | model


@functools.cache
def llama_index(url: str, **options: Any) -> Any:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    llms = pytest.importorskip("llama_index.llms.openai", reason="llama-index-llms-openai is not installed")
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import TextNode

    model = llms.OpenAI(model="gpt-4o", api_base=f"{url}/v1", api_key="k", max_retries=0)
    nodes = [TextNode(text=text, id_=name) for name, text in TEXTS.items()]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    return index.as_query_engine(llm=model, similarity_top_k=2, **options)


@functools.cache
def haystack(url: str) -> Any:
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from haystack import Document, Pipeline
    from haystack.components.builders import ChatPromptBuilder
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack.utils import Secret

    store = InMemoryDocumentStore()
    store.write_documents([Document(id=name, content=f"{text} letter") for name, text in TEXTS.items()])
    template = [ChatMessage.from_user("{{documents}} {{question}}")]
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    pipeline.add_component("builder", ChatPromptBuilder(template=template, required_variables="*"))
    pipeline.add_component(
        "model", OpenAIChatGenerator(model="m", api_key=Secret.from_token("k"), api_base_url=f"{url}/v1", max_retries=0)
    )
    pipeline.connect("retriever.documents", "builder.documents")
    pipeline.connect("builder.prompt", "model.messages")
    return pipeline


def of_haystack(top_k: int = 2, **more: Any) -> dict[str, Any]:
    return {"retriever": {"query": ASKED, "top_k": top_k}, "builder": {"question": ASKED}, **more}


def run_async(pipeline: Any) -> Any:
    if not hasattr(pipeline, "run_async"):
        pytest.skip("this Haystack has another class for asynchronous pipelines")
    return pipeline.run_async(of_haystack())


async def read(stream: Any) -> list[Any]:
    return [piece async for piece in stream]


async def read_later(answer: Any) -> list[Any]:
    return await read((await answer).response_gen)


Call = Callable[[str], Any]
SHORT: dict[str, Call] = {
    "LangChain": lambda url: langchain(url).invoke(ASKED),
    "LlamaIndex": lambda url: llama_index(url).query(ASKED),
    "Haystack": lambda url: haystack(url).run(of_haystack()),
}
LONG: dict[str, Call] = {
    "LangChain, async": lambda url: langchain(url).ainvoke(ASKED),
    "LangChain, streamed": lambda url: list(langchain(url).stream(ASKED)),
    "LangChain, streamed async": lambda url: read(langchain(url).astream(ASKED)),
    "LangChain, batch of one": lambda url: langchain(url).batch([ASKED]),
    "LlamaIndex, async": lambda url: llama_index(url).aquery(ASKED),
    "LlamaIndex, streamed": lambda url: list(llama_index(url, streaming=True).query(ASKED).response_gen),
    "LlamaIndex, streamed async": lambda url: read_later(llama_index(url, streaming=True).aquery(ASKED)),
    "Haystack, async": lambda url: run_async(haystack(url)),
    "Haystack, streamed": lambda url: haystack(url).run(of_haystack(model={"streaming_callback": lambda _: None})),
}


def check_one_run(events: CapturedEvents, server: DrawingServer) -> None:
    (summary,) = settled(events, 1)
    assert told(events) == account(server)
    assert len(server.account) == 1
    (query,), (retrieved,) = events.of_type("llm.rag.query"), events.of_type("llm.rag.retrieved")
    (generated,) = events.of_type("llm.rag.generated")
    assert (query["query_hash"], query["top_k"], query.get("assumed")) == (DIGEST, 2, None)
    assert query["retriever_name"].endswith("Retriever")
    ids = [chunk["chunk_id"] for chunk in retrieved["chunks"]]
    assert len(ids) == 2
    assert set(ids) <= set(TEXTS)
    assert all(chunk["content_hash"] for chunk in retrieved["chunks"])
    assert generated["chunk_ids_used"] == ids
    assert generated["provider"] == "openai"
    assert summary["total_input_tokens"] == server.account[0]["prompt_tokens"] or generated.get("prompt_tokens") is None
    events.assert_no_text(ASKED, *TEXTS.values())


@pytest.mark.parametrize("name", SHORT)
def test_a_run_is_one_session(name: str, server: DrawingServer, traced: CapturedEvents) -> None:
    run(lambda: SHORT[name](server.url))
    check_one_run(traced, server)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_a_run_of_another_kind_is_one_session(name: str, server: DrawingServer, traced: CapturedEvents) -> None:
    run(lambda: LONG[name](server.url))
    check_one_run(traced, server)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_a_failing_model_is_an_error_and_raises_as_before(
    name: str, server: DrawingServer, traced: CapturedEvents
) -> None:
    server.fail = 400
    try:
        with pytest.raises(Exception, match="no: "):
            SHORT[name](server.url)
    finally:
        server.fail = None
    (summary,) = settled(traced, 1)
    (found,) = traced.of_type("llm.rag.generated")
    assert (summary["status"], found["status"]) == ("error", "error")
    assert "Error" in found["error_message"]
    traced.assert_no_text(ASKED, *TEXTS.values())


def failing_langchain(_url: str) -> Any:
    retrievers = pytest.importorskip("langchain_core.retrievers", reason="langchain-core is not installed")

    class Broken(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            raise LookupError(f"nothing for {query}")

    return Broken().invoke(ASKED)


def failing_llama_index(url: str) -> Any:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever

    class Broken(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> Any:
            raise LookupError(f"nothing for {query_bundle.query_str}")

    model = llama_index(url)._response_synthesizer._llm
    return RetrieverQueryEngine.from_args(Broken(), llm=model).query(ASKED)


def failing_haystack(_url: str) -> Any:
    haystack_module = pytest.importorskip("haystack", reason="haystack-ai is not installed")

    @haystack_module.component
    class BrokenRetriever:
        @haystack_module.component.output_types(documents=list)
        def run(self, query: str, top_k: int = 3) -> Any:
            raise LookupError(f"nothing for {query}")

    pipeline = haystack_module.Pipeline()
    pipeline.add_component("retriever", BrokenRetriever())
    return pipeline.run({"retriever": {"query": ASKED}})


@pytest.mark.slow
@pytest.mark.parametrize("fail", [failing_langchain, failing_llama_index, failing_haystack])
def test_a_failing_retriever_is_an_error_and_raises_as_before(
    fail: Call, server: DrawingServer, traced: CapturedEvents
) -> None:
    with pytest.raises(Exception, match="nothing for"):
        fail(server.url)
    (summary,) = settled(traced, 1)
    (found,) = traced.of_type("llm.rag.retrieved")
    assert (summary["status"], found["status"], found["chunks"]) == ("error", "error", [])
    assert found["error_message"] == "LookupError"
    assert not server.account
    traced.assert_no_text(ASKED, "nothing for")


FAILING: list[type[Exception]] = []


def may_fail(query: str) -> None:
    """Fail as a tool does, with what it was given in what it says."""
    for kind in FAILING:
        raise kind(f"a tool's own words on {query}")


def agent_of_langgraph(url: str) -> Any:
    prebuilt = pytest.importorskip("langgraph.prebuilt", reason="langgraph is not installed")
    from langchain_core.tools import tool

    retriever = langchain(url).first.steps__["documents"]

    @tool
    def look_up(query: str) -> str:
        """Look something up."""
        may_fail(query)
        return str(retriever.invoke(query))

    agent = prebuilt.create_react_agent(langchain(url).last, [look_up])
    return agent.invoke({"messages": [("user", ASKED)]})


async def agent_of_llama_index(url: str) -> Any:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.agent.workflow import FunctionAgent

    engine = llama_index(url)

    def look_up(query: str) -> str:
        """Look something up."""
        may_fail(query)
        return str(engine.retrieve(query))

    agent = FunctionAgent(tools=[look_up], llm=engine._response_synthesizer._llm, streaming=False)
    return await agent.run(ASKED)


def agent_of_haystack(url: str) -> Any:
    agents = pytest.importorskip("haystack.components.agents", reason="haystack-ai is not installed")
    from haystack import Pipeline
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret

    store = haystack(url).get_component("retriever").document_store
    inner = Pipeline()
    inner.add_component("retriever", InMemoryBM25Retriever(store))

    def look_up(query: str) -> str:
        """Look something up."""
        may_fail(query)
        return str(inner.run({"retriever": {"query": query}}))

    model = OpenAIChatGenerator(model="m", api_key=Secret.from_token("k"), api_base_url=f"{url}/v1", max_retries=0)
    agent = agents.Agent(chat_generator=model, tools=[create_tool_from_function(look_up)])
    return agent.run(messages=[ChatMessage.from_user(ASKED)])


@pytest.mark.slow
@pytest.mark.parametrize("ask", [agent_of_langgraph, agent_of_llama_index, agent_of_haystack])
def test_an_agent_with_its_tools_is_one_session(ask: Call, server: DrawingServer, traced: CapturedEvents) -> None:
    server.tool_arguments = '{"query": "letter of a tool\'s argument"}'
    run(lambda: ask(server.url))
    (summary,) = settled(traced, 1)
    assert told(traced) == account(server)
    if ask is agent_of_llama_index and len(server.account) == 1:
        pytest.skip("this LlamaIndex's agent calls no tool that an answer in one piece asks for")
    assert (summary["generation_count"], summary["retrieval_count"]) == (2, 1)
    first, last = traced.of_type("llm.rag.generated")
    assert first["finish_reason"] == "tool_calls"
    assert not first["chunk_ids_used"]
    (found,) = traced.of_type("llm.rag.retrieved")
    assert last["chunk_ids_used"] == [chunk["chunk_id"] for chunk in found["chunks"]] != []
    traced.assert_no_text(ASKED, "letter of a tool's argument", *TEXTS.values())


@pytest.mark.slow
@pytest.mark.parametrize("ask", [agent_of_langgraph, agent_of_llama_index, agent_of_haystack])
def test_nothing_is_recorded_of_what_a_failing_tool_says(
    ask: Call, server: DrawingServer, traced: CapturedEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.tool_arguments = '{"query": "letter of a tool\'s argument"}'
    monkeypatch.setitem(globals(), "FAILING", [LookupError])
    # Some tell the model of it, others the application.
    with contextlib.suppress(Exception):
        run(lambda: ask(server.url))
    settled(traced, 1)
    assert told(traced) == account(server) != []
    traced.assert_no_text(ASKED, "letter of a tool's argument", "a tool's own words", *TEXTS.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LangChain, async", "LlamaIndex, async", "Haystack, async"])
def test_a_cancelled_task_leaves_a_cancelled_generation(
    name: str, server: DrawingServer, traced: CapturedEvents
) -> None:
    async def leave() -> None:
        task = asyncio.ensure_future(LONG[name](server.url))
        await asyncio.to_thread(server.asked.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    server.delay = 0.5
    try:
        run(leave)
    finally:
        server.delay = 0.0
    (summary,) = settled(traced, 1)
    assert summary["error_count"] == 0
    assert [found["status"] for found in traced.of_type("llm.rag.generated")] == ["cancelled"]


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [0, 1])
@pytest.mark.parametrize("leave", ["drop", "close"])
def test_an_answer_of_llama_index_that_is_left_ends_its_session(
    pieces: int, leave: str, server: DrawingServer, traced: CapturedEvents
) -> None:
    answer = llama_index(server.url, streaming=True).query(ASKED)
    for _ in range(pieces):
        next(answer.response_gen)
    if leave == "close":
        answer.response_gen.close()
    del answer
    gc.collect()
    (summary,) = settled(traced, 1)
    assert summary["error_count"] == 0
    assert all(found["status"] == "cancelled" for found in traced.of_type("llm.rag.generated"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_a_field_that_the_server_draws_is_not_constant(
    name: str, server: DrawingServer, traced: CapturedEvents
) -> None:
    for _ in range(20):
        SHORT[name](server.url)
    settled(traced, 20)
    drawn = told(traced)
    assert drawn == account(server)
    said = {name: {found[name] for found in drawn} for name in FIELDS}
    said = {name: values for name, values in said.items() if values != {None}}
    assert {name for name, values in said.items() if len(values) == 1} == {"model"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_an_explicit_session_wins(name: str, server: DrawingServer, traced: CapturedEvents) -> None:
    with sf_rag.session(ASKED) as session:
        SHORT[name](server.url)
    kinds = [event.event_type.rpartition(".")[2] for event in traced.all if event.session_id == session.session_id]
    assert kinds == ["query", "retrieved", "generated", "session"]
    assert len(traced) == 4


@pytest.mark.slow
def test_langchain_left_early(server: DrawingServer, traced: CapturedEvents) -> None:
    stream = langchain(server.url).stream(ASKED)
    next(stream)
    stream.close()
    settled(traced, 1)

    async def leave() -> None:
        pieces = langchain(server.url).astream(ASKED)
        await anext(pieces)
        await pieces.aclose()

    async def time_out() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await langchain(server.url).ainvoke(ASKED)

    run(leave)
    settled(traced, 2)
    server.delay = 1.0
    try:
        run(time_out)
    finally:
        server.delay = 0.0
    assert [summary["error_count"] for summary in settled(traced, 3)] == [0, 0, 0]
    statuses = [found["status"] for found in traced.of_type("llm.rag.generated")]
    assert statuses[1:] == ["cancelled", "cancelled"]


def echoing_langchain(url: str) -> tuple[Call, Call]:
    retrievers = pytest.importorskip("langchain_core.retrievers", reason="langchain-core is not installed")
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnablePassthrough

    class Echo(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            return [Document("a text", id=f"of {query}")]

    prompt, model = langchain(url).steps[1:]
    chain = {"documents": Echo(), "question": RunnablePassthrough()} | prompt | model
    return chain.invoke, chain.ainvoke


def echoing_llama_index(url: str) -> tuple[Call, Call]:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Echo(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> Any:
            return [NodeWithScore(node=TextNode(text="a text", id_=f"of {query_bundle.query_str}"))]

    engine = RetrieverQueryEngine.from_args(Echo(), llm=llama_index(url)._response_synthesizer._llm)
    return engine.query, engine.aquery


def echoing_haystack(url: str) -> tuple[Call, Call]:
    package = pytest.importorskip("haystack", reason="haystack-ai is not installed")

    @package.component
    class EchoRetriever:
        @package.component.output_types(documents=list[package.Document])
        def run(self, query: str) -> Any:
            return {"documents": [package.Document(id=f"of {query}", content="a text")]}

    from haystack.components.builders import ChatPromptBuilder
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.utils import Secret

    template = [ChatMessage.from_user("{{documents}} {{question}}")]
    model = OpenAIChatGenerator(model="m", api_key=Secret.from_token("k"), api_base_url=f"{url}/v1", max_retries=0)
    pipeline = package.Pipeline()
    pipeline.add_component("retriever", EchoRetriever())
    pipeline.add_component("builder", ChatPromptBuilder(template=template, required_variables="*"))
    pipeline.add_component("model", model)
    pipeline.connect("retriever.documents", "builder.documents")
    pipeline.connect("builder.prompt", "model.messages")

    def given(question: str) -> dict[str, Any]:
        return {"retriever": {"query": question}, "builder": {"question": question}}

    async def ask_async(question: str) -> Any:
        if hasattr(pipeline, "run_async"):
            return await pipeline.run_async(given(question))
        return await asyncio.to_thread(pipeline.run, given(question))

    return lambda question: pipeline.run(given(question)), ask_async


@pytest.mark.slow
@pytest.mark.parametrize("make", [echoing_langchain, echoing_llama_index, echoing_haystack])
def test_runs_at_once_keep_to_themselves(make: Any, server: DrawingServer, traced: CapturedEvents) -> None:
    ask, ask_async = make(server.url)
    asked = [f"question-{number};" for number in range(400)]

    async def ask_all() -> None:
        await asyncio.gather(*(ask_async(question) for question in asked[:200]))

    run(ask_all)
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(ask, asked[200:]))
    assert len(settled(traced, 400)) == 400
    questions = (re.search(rb"question-\d+;", body) for body in server.bodies)
    said = {found[0].decode(): told for found, told in zip(questions, account(server), strict=True) if found}
    assert set(said) == set(asked)
    by_digest = {hashlib.sha256(question.encode()).hexdigest(): question for question in asked}
    of_session = {event.session_id: by_digest[event.payload["query_hash"]] for event in of(traced, "query")}
    assert len(of_session) == 400
    for event in of(traced, "retrieved"):
        assert [chunk["chunk_id"] for chunk in event.payload["chunks"]] == [f"of {of_session[event.session_id]}"]
    for event in of(traced, "generated"):
        question = of_session[event.session_id]
        assert {name: event.payload.get(name) for name in FIELDS} == said[question]
        assert event.payload["chunk_ids_used"] == [f"of {question}"]


def of(events: CapturedEvents, kind: str) -> list[Any]:
    return [event for event in events.all if event.event_type == f"llm.rag.{kind}"]


@pytest.mark.slow
def test_a_thread_of_a_graph_is_a_conversation(server: DrawingServer, traced: CapturedEvents) -> None:
    graphs = pytest.importorskip("langgraph.graph", reason="langgraph is not installed")
    chain = langchain(server.url)
    graph = graphs.StateGraph(dict)
    graph.add_node("answer", lambda state: {"answer": chain.invoke(state["question"]).content})
    graph.set_entry_point("answer")
    graph.compile().invoke({"question": ASKED}, {"configurable": {"thread_id": "t-7"}})
    check_one_run(traced, server)
    assert traced.of_type("llm.rag.session")[0]["conversation_id"] == "t-7"


@pytest.mark.slow
def test_a_framework_whose_objects_fail_goes_on(server: DrawingServer, traced: CapturedEvents) -> None:
    retrievers = pytest.importorskip("langchain_core.retrievers", reason="langchain-core is not installed")

    class Bomb:
        def __getattr__(self, name: str) -> Any:
            raise OSError(name)

    class Odd(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            return [Bomb()]

    (found,) = Odd().invoke(ASKED)
    assert isinstance(found, Bomb)
    settled(traced, 1)


@pytest.mark.slow
def test_openinference_beside_ours_says_what_it_says_without(server: DrawingServer) -> None:
    openinference = pytest.importorskip(
        "openinference.instrumentation.langchain", reason="openinference-instrumentation-langchain is not installed"
    )
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    def spans() -> list[Any]:
        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        instrumentor = openinference.LangChainInstrumentor()
        instrumentor.instrument(tracer_provider=provider)
        try:
            langchain(server.url).invoke(ASKED)
        finally:
            instrumentor.uninstrument()
        # In no order: two branches of the chain run at once.
        ended = exporter.get_finished_spans()
        return sorted((span.name, sorted(span.attributes), span.status.status_code.name) for span in ended)

    without = spans()
    with capture(strict=False):
        auto.setup()
        try:
            assert spans() == without
        finally:
            auto.teardown()
