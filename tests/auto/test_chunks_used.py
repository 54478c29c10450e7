"""Which chunks a generation says it was given: those of the lists before it, whoever recorded them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest
from auto.conftest import settled
from auto.test_clients import HELLO, Clients
from support.drawing_server import DrawingServer

from spanforge.auto import trace_rag
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents

pytestmark = pytest.mark.filterwarnings("ignore")

ASKED = "which letter?"


def hits(*ids: str) -> list[dict[str, Any]]:
    return [{"chunk_id": one, "score": 0.5, "source": "s"} for one in ids]


def used(events: CapturedEvents) -> list[list[str]]:
    return [list(found["chunk_ids_used"]) for found in events.of_type("llm.rag.generated")]


def by_scope(*ids: str) -> None:
    with sf_rag.retrieval() as retrieval:
        retrieval.record(hits(*ids))


def by_call(*ids: str) -> None:
    sf_rag.trace_retrieval(chunks=hits(*ids))


@trace_rag
def by_decorator(*ids: str) -> list[dict[str, Any]]:
    return hits(*ids)


FINDS = pytest.mark.parametrize("find", [by_scope, by_call, by_decorator])


@pytest.fixture
def client(server: DrawingServer) -> Generator[Callable[[], Any]]:
    made = Clients(server.url)
    yield lambda: made.openai.chat.completions.create(**HELLO)
    made.close()


def model() -> Any:
    models = pytest.importorskip("langchain_core.language_models", reason="langchain-core is not installed")
    return models.FakeListChatModel(responses=["yes"])


def retriever(*ids: str, before: Callable[[], object] = lambda: None) -> Any:
    retrievers = pytest.importorskip("langchain_core.retrievers", reason="langchain-core is not installed")
    from langchain_core.documents import Document

    class Fixed(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            before()
            return [Document("text", id=one) for one in ids]

    return Fixed()


def chain(*steps: Any) -> None:
    """Run steps one after the other, each of which is given the question."""
    from langchain_core.runnables import RunnableLambda, RunnableSequence

    def step(do: Any) -> Any:
        call = do.invoke if hasattr(do, "invoke") else lambda _: do()
        return RunnableLambda(lambda asked: (call(asked), asked)[1])

    RunnableSequence(RunnableLambda(str), *(step(do) for do in steps), RunnableLambda(str)).invoke(ASKED)


@FINDS
def test_a_clients_call_uses_what_the_session_has_found(
    find: Callable[..., object], client: Callable[[], Any], traced: CapturedEvents
) -> None:
    with sf_rag.session(ASKED):
        client()
        find("a", "b")
        client()
        client()
        find("c")
        by_call("d")
        client()
        sf_rag.trace_rerank(model="mine", chunks=hits("d"))
        client()
        sf_rag.trace_rerank(model="mine", status="error")
        client()
        sf_rag.trace_retrieval(status="error")
        client()
    with sf_rag.session("another question"):
        client()
    assert used(traced) == [[], ["a", "b"], ["a", "b"], ["c", "d"], ["d"], ["d"], [], []]


@FINDS
def test_a_run_uses_what_its_session_has_found_before_it(find: Callable[..., object], traced: CapturedEvents) -> None:
    llm = model()
    with sf_rag.session(ASKED):
        find("a")
        llm.invoke(ASKED)
        chain(retriever("b"), model())
        chain(retriever("c"), model())
        retriever("d").invoke(ASKED)
        llm.invoke(ASKED)
    assert used(traced) == [["a"], ["b"], ["c"], ["d"]]


@FINDS
@pytest.mark.parametrize("is_within", [False, True], ids=["own session", "within a session"])
def test_a_run_uses_what_its_steps_have_found(
    find: Callable[..., object], is_within: bool, traced: CapturedEvents
) -> None:
    def ask() -> None:
        llm = model()
        chain(lambda: find("a"), llm, lambda: find("b"), llm, retriever("c"), llm)

    if is_within:
        with sf_rag.session(ASKED):
            ask()
    else:
        ask()
    assert len(settled(traced, 1)) == 1
    # One run's prompts keep what they had, as an agent's do.
    assert used(traced) == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_an_order_that_a_step_records_is_what_its_run_uses(traced: CapturedEvents) -> None:
    llm = model()

    def rank() -> None:
        with sf_rag.rerank("mine") as rerank:
            rerank.record(hits("b"))

    def fail() -> None:
        sf_rag.trace_rerank(model="mine", status="error")

    chain(retriever("a", "b"), rank, fail, llm)
    assert used(traced) == [["b"]]


def test_what_a_scope_makes_of_what_is_found_within_is_what_is_used(traced: CapturedEvents) -> None:
    llm = model()

    def merge() -> None:
        with sf_rag.retrieval() as retrieval:
            retriever("a").invoke(ASKED)
            llm.invoke("better words?")
            retriever("b").invoke(ASKED)
            retrieval.record(hits("merged"))

    chain(merge, llm)
    assert used(traced) == [["a"], ["merged"]]


def test_what_a_run_finds_in_a_session_of_its_own_is_not_the_others(traced: CapturedEvents) -> None:
    llm = model()

    def step() -> None:
        with sf_rag.session("another question"):
            by_call("theirs")
            llm.invoke("within")

    chain(retriever("a"), step, llm)
    assert used(traced) == [["theirs"], ["a"]]


@pytest.mark.parametrize("said", [["x"], []])
def test_what_the_application_says_counts(said: list[str], client: Callable[[], Any], traced: CapturedEvents) -> None:
    with sf_rag.session(ASKED):
        by_call("a")
        with sf_rag.generation() as generation:
            client()
            generation.record(chunk_ids_used=said)
        sf_rag.trace_generation(model="mine")
    # Of a generation that the application records itself nothing is made up.
    assert used(traced) == [said, []]


def langchain_with_own_stage(find: Callable[..., object]) -> Any:
    chain(retriever("b", "a", before=lambda: find("a", "b", "c")), model())


def llama_index_with_own_stage(find: Callable[..., object]) -> Any:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Own(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            find("a", "b", "c")
            return [NodeWithScore(node=TextNode(text=f"text {name}", id_=name)) for name in "ba"]

    RetrieverQueryEngine.from_args(Own(), llm=MockLLM()).query(ASKED)


def haystack_with_own_stage(find: Callable[..., object]) -> Any:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")

    @haystack.component
    class OwnRetriever:
        @haystack.component.output_types(documents=list)
        def run(self, query: str) -> dict[str, Any]:
            find("a", "b", "c")
            return {"documents": [haystack.Document(content="text", id=name) for name in "ba"]}

    @haystack.component
    class EchoGenerator:
        def __init__(self) -> None:
            haystack.component.set_input_type(self, "documents", list)

        @haystack.component.output_types(replies=list)
        def run(self, **given: Any) -> dict[str, Any]:
            return {"replies": [str(given)]}

    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", OwnRetriever())
    pipeline.add_component("generator", EchoGenerator())
    pipeline.connect("retriever.documents", "generator.documents")
    pipeline.run({"retriever": {"query": ASKED}})


OWN_STAGES = [langchain_with_own_stage, llama_index_with_own_stage, haystack_with_own_stage]


@pytest.mark.parametrize("find", [by_scope, by_call])
@pytest.mark.parametrize("ask", OWN_STAGES)
def test_a_stage_within_a_retriever_hangs_below_it(
    ask: Callable[..., Any], find: Callable[..., object], traced: CapturedEvents
) -> None:
    ask(find)
    (summary,) = settled(traced, 1)
    counts = [summary[f"{kind}_count"] for kind in ("retrieval", "rerank", "generation")]
    assert (counts, summary["total_chunks_retrieved"]) == ([1, 1, 1], 3)
    (inner,), (outer,) = traced.of_type("llm.rag.retrieved"), traced.of_type("llm.rag.reranked")
    assert [[one["chunk_id"] for one in found["chunks"]] for found in (inner, outer)] == [["a", "b", "c"], ["b", "a"]]
    assert used(traced) == [["b", "a"]]
