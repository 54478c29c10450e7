"""A stage that the application records itself is one stage, whatever traces the call within its block."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest
from auto.conftest import FIELDS, account, run, settled, told
from auto.test_clients import CALLS, Clients
from auto.test_frameworks import ASKED, LONG, SHORT, TEXTS, haystack, langchain, llama_index
from support.drawing_server import DrawingServer

from spanforge import auto
from spanforge.auto import trace_rag
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents

pytestmark = pytest.mark.filterwarnings("ignore")

Scope = Callable[[], Any]


def within(name: str, scope: Scope, call: Callable[[], Any], record: Callable[[Any, Any], None]) -> None:
    """Make a call, asynchronous where its name says so, within a session and a scope."""

    async def later() -> None:
        async with sf_rag.session(ASKED), scope() as block:
            record(block, await call())

    if "async" in name:
        run(later)
        return
    with sf_rag.session(ASKED), scope() as block:
        record(block, call())


def nothing(_block: Any, _found: Any) -> None:
    """Leave everything to what traces by itself."""


def kinds(events: CapturedEvents) -> list[str]:
    return [event.event_type.rpartition(".")[2] for event in events.all]


@pytest.fixture
def clients(server: DrawingServer) -> Generator[Clients]:
    made = Clients(server.url)
    yield made
    made.close()


@pytest.mark.parametrize("name", CALLS)
def test_a_generation_around_a_client_is_its_generation(
    name: str, clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    within(name, lambda: sf_rag.generation(span_name="mine"), lambda: CALLS[name](clients), nothing)
    assert kinds(traced) == ["query", "generated", "session"]
    assert told(traced) == account(server)
    (found,) = traced.of_type("llm.rag.generated")
    assert (found["span_name"], found["provider"]) == ("mine", "openai" if name in OF_OPENAI else "anthropic")
    assert ("time_to_first_token_ms" in found) is found.get("stream", False)


OF_OPENAI = {name for name in CALLS if "messages" not in name}


def of_frameworks(names: dict[str, Any], *slow: dict[str, Any]) -> list[Any]:
    return [*names, *(pytest.param(name, marks=pytest.mark.slow) for more in slow for name in more)]


@pytest.mark.parametrize("name", of_frameworks(SHORT, LONG))
def test_a_generation_around_a_run_is_its_generation(name: str, server: DrawingServer, traced: CapturedEvents) -> None:
    call = (SHORT | LONG)[name]
    within(name, lambda: sf_rag.generation("mine", output_tokens=7), lambda: call(server.url), nothing)
    settled(traced, 1)
    assert sorted(kinds(traced)) == ["generated", "query", "retrieved", "session"]
    (found,), (retrieved,) = traced.of_type("llm.rag.generated"), traced.of_type("llm.rag.retrieved")
    (said,) = account(server)
    # What the application says itself is what counts; what it leaves out is what the run knows.
    told_in_full = {**said, "model": "mine", "output_tokens": 7}
    assert {name: found.get(name) for name in FIELDS} == told_in_full
    assert found["chunk_ids_used"] == [chunk["chunk_id"] for chunk in retrieved["chunks"]] != []


def retriever(name: str, url: str) -> Callable[[], Any]:
    """Return what asks a framework's retriever."""
    if name.startswith("LangChain"):
        found = langchain(url).first.steps__["documents"]
        return lambda: found.ainvoke(ASKED) if "async" in name else found.invoke(ASKED)
    if name.startswith("LlamaIndex"):
        engine = llama_index(url).retriever
        return lambda: engine.aretrieve(ASKED) if "async" in name else engine.retrieve(ASKED)
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from haystack import Pipeline
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever

    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(haystack(url).get_component("retriever").document_store))
    asked = {"retriever": {"query": ASKED, "top_k": 2}}
    return lambda: pipeline.run(asked)["retriever"]["documents"]


def decorated(call: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: trace_rag(lambda query: call())(ASKED)


RETRIEVERS = ("LangChain", "LangChain, async", "LlamaIndex", "LlamaIndex, async", "Haystack")
RECORDS: dict[str, Callable[[Any, Any], None]] = {
    "left to it": nothing,
    "recorded": lambda block, found: block.record(found),
    "added": lambda block, found: block.add(*found),
}


@pytest.mark.parametrize("is_decorated", [False, True], ids=["itself", "decorated"])
@pytest.mark.parametrize("how", RECORDS)
@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_retrieval_around_a_retriever_is_its_retrieval(
    name: str, how: str, is_decorated: bool, server: DrawingServer, traced: CapturedEvents
) -> None:
    call = retriever(name, server.url)
    within(name, sf_rag.retrieval, decorated(call) if is_decorated else call, RECORDS[how])
    assert kinds(traced) == ["query", "retrieved", "session"]
    (found,) = traced.of_type("llm.rag.retrieved")
    ids = [chunk["chunk_id"] for chunk in found["chunks"]]
    assert len(ids) == len(set(ids)) == 2
    assert set(ids) <= set(TEXTS)
    assert (found["status"], found["total_found"]) == ("ok", 2)
    traced.assert_no_text(ASKED, *TEXTS.values())


@pytest.mark.parametrize("how", RECORDS)
def test_a_retrieval_around_a_store_is_its_retrieval(how: str, server: DrawingServer, traced: CapturedEvents) -> None:
    store = langchain(server.url).first.steps__["documents"].vectorstore
    within("", sf_rag.retrieval, lambda: store.similarity_search_with_score(ASKED, 2), RECORDS[how])
    assert kinds(traced) == ["query", "retrieved", "session"]
    (found,) = traced.of_type("llm.rag.retrieved")
    assert all(0 <= chunk["score"] <= 1 for chunk in found["chunks"])


def test_several_retrievers_within_a_retrieval_are_one(server: DrawingServer, traced: CapturedEvents) -> None:
    ask = retriever("LangChain", server.url)
    within("", sf_rag.retrieval, lambda: [*ask(), *ask()], lambda block, _: block.record([{"id": "merged"}]))
    (found,) = traced.of_type("llm.rag.retrieved")
    assert [chunk["chunk_id"] for chunk in found["chunks"]] == ["merged"]


def test_a_rerank_around_a_ranker_is_its_rerank_and_the_retrieval_is_a_stage(
    server: DrawingServer, traced: CapturedEvents
) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.postprocessor import SimilarityPostprocessor
    from llama_index.core.schema import QueryBundle

    ask, cut = retriever("LlamaIndex", server.url), SimilarityPostprocessor(similarity_cutoff=-1.0)

    def ranked() -> Any:
        return cut.postprocess_nodes(ask(), query_bundle=QueryBundle(ASKED))

    within("", sf_rag.rerank, ranked, nothing)
    assert sorted(kinds(traced)) == ["query", "reranked", "retrieved", "session"]
    (found,) = traced.of_type("llm.rag.reranked")
    assert (found["model"], found["input_count"], len(found["chunks"])) == ("SimilarityPostprocessor", 2, 2)


def test_a_second_call_within_a_generation_is_one_of_its_own(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    call = CALLS["chat"]
    within("", sf_rag.generation, lambda: (call(clients), call(clients)), nothing)
    key = lambda found: found["response_id"]  # noqa: E731
    assert sorted(told(traced), key=key) == sorted(account(server), key=key)


def test_a_call_outside_of_any_session_gives_the_generation_around_it_one(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    with sf_rag.generation():
        CALLS["chat"](clients)
    with sf_rag.retrieval():
        retriever("LangChain", server.url)()
    assert kinds(traced) == ["query", "generated", "session", "query", "retrieved", "session"]
    assert len({event.session_id for event in traced.all}) == 2
    ended = traced.of_type("llm.rag.session")
    assert [one["generation_count"] + one["retrieval_count"] for one in ended] == [1, 1]


def test_a_session_that_a_scope_names_is_the_calls(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    session_id = sf_rag.trace_query(ASKED)
    with sf_rag.retrieval(session_id) as block:
        block.record(retriever("LangChain", server.url)())
    with sf_rag.generation(session_id=session_id):
        CALLS["chat"](clients)
    sf_rag.end_session(session_id)
    assert kinds(traced) == ["query", "retrieved", "generated", "session"]
    assert {event.session_id for event in traced.all} == {session_id}


def test_a_session_within_a_scope_has_stages_of_its_own(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    with sf_rag.session("another question"), sf_rag.generation("outer"), sf_rag.session(ASKED):
        CALLS["chat"](clients)
    assert [found["model"] for found in traced.of_type("llm.rag.generated")] == ["m", "outer"]


def test_a_failing_call_is_one_generation_that_failed(
    clients: Clients, server: DrawingServer, traced: CapturedEvents
) -> None:
    server.fail = 400
    try:
        with pytest.raises(Exception, match="no: "):
            within("", sf_rag.generation, lambda: CALLS["chat"](clients), nothing)
    finally:
        server.fail = None
    (found,) = traced.of_type("llm.rag.generated")
    assert (found["status"], found["error_message"], found["model"]) == ("error", "BadRequestError", "m")
    assert sf_rag.current_scope() is None


def without_a_session() -> int:
    return sf_rag.get_status().replaced.get("session_id_missing", 0)


def recorded(_given: Any = None) -> str:
    with sf_rag.retrieval() as retrieval:
        retrieval.record([{"chunk_id": "a", "score": 0.5, "source": "s"}])
    sf_rag.trace_rerank(model="mine", chunks=[{"chunk_id": "a", "score": 0.5, "source": "s"}])
    return "text"


def a_step_of_langchain() -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.runnables import RunnableLambda

    (RunnableLambda(lambda asked: asked) | RunnableLambda(recorded)).invoke(ASKED)


def a_step_of_langchain_in_a_task() -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.runnables import RunnableLambda

    async def later(asked: str) -> str:
        return recorded(asked)

    run(lambda: (RunnableLambda(later) | RunnableLambda(later)).ainvoke(ASKED))


def a_retriever_of_llama_index() -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import CustomQueryEngine

    class Own(CustomQueryEngine):
        llm: MockLLM

        def custom_query(self, query_str: str) -> str:
            return recorded(query_str)

    Own(llm=MockLLM()).query(ASKED)


def a_component_of_haystack() -> None:
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from haystack import Pipeline, component

    @component
    class Own:
        @component.output_types(text=str)
        def run(self, query: str) -> dict[str, str]:
            return {"text": recorded(query)}

    pipeline = Pipeline()
    pipeline.add_component("own", Own())
    pipeline.run({"own": {"query": ASKED}})


STEPS = [
    a_step_of_langchain, a_step_of_langchain_in_a_task, a_retriever_of_llama_index, a_component_of_haystack,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_what_a_step_of_a_run_records_itself_is_of_the_runs_session(
    step: Callable[[], None], traced: CapturedEvents
) -> None:
    before = without_a_session()
    step()
    settled(traced, 1)
    times = 2 if "task" in step.__name__ else 1
    assert kinds(traced) == ["query", *["retrieved", "reranked"] * times, "session"]
    assert len({event.payload["session_id"] for event in traced}) == 1
    assert without_a_session() == before


def test_what_a_step_records_while_paused_or_in_a_session_of_its_own_is_not_of_the_run(traced: CapturedEvents) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.runnables import RunnableLambda

    def step(asked: str) -> str:
        with sf_rag.session("Another question?"):
            return recorded(asked)

    RunnableLambda(step).invoke(ASKED)
    settled(traced, 1)
    assert kinds(traced) == ["query", "retrieved", "reranked", "session"]
    before = without_a_session()
    with auto.paused():
        RunnableLambda(recorded).invoke(ASKED)
    assert kinds(traced)[4:] == ["retrieved", "reranked"]
    assert without_a_session() == before + len(("retrieval", "rerank"))


@pytest.mark.parametrize("is_open_before", [False, True])
def test_a_session_that_a_step_opens_has_the_calls_within_and_the_run_the_others(
    is_open_before: bool, traced: CapturedEvents
) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.runnables import RunnableLambda

    model = FakeListChatModel(responses=["Yes."])
    opened: list[str] = []

    def step(asked: Any) -> str:
        with sf_rag.session("Another question?") as session:
            opened.append(session.session_id)
            model.invoke("within")
        return str(asked)

    chain = RunnableLambda(step) | model
    (model | chain if is_open_before else chain).invoke(ASKED)
    settled(traced, 2)
    of = {event["session_id"] for event in traced.of_type("llm.rag.session")}
    (own,) = of - set(opened)
    within = [event["session_id"] for event in traced.of_type("llm.rag.generated")]
    assert within == [own, *opened, own][0 if is_open_before else 1 :]
