"""What is traced within a scope, however often, in whatever thread, and whatever becomes of the scope or the call."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Generator
from contextvars import copy_context
from typing import Any

import pytest

from spanforge import auto
from spanforge.auto import trace_rag
from spanforge.integrations._runs import Run
from spanforge.sdk import sf_rag
from spanforge.testing import CapturedEvents, capture

pytestmark = pytest.mark.filterwarnings("ignore")

ASKED = "which letter?"


@pytest.fixture
def events() -> Generator[CapturedEvents]:
    auto.setup({"langchain", "llama_index", "haystack"})
    with capture(strict=False) as captured:
        yield captured
    auto.teardown()


@trace_rag
def search(query: str, *ids: str) -> list[dict[str, Any]]:
    return [{"id": one, "score": 0.9 - place / 10} for place, one in enumerate(ids)]


@trace_rag
def fail(query: str, error: type[Exception] = ValueError) -> list[Any]:
    raise error


def ids_of(found: dict[str, Any]) -> list[str]:
    return [chunk["chunk_id"] for chunk in found["chunks"]]


def langchain_retriever(*ids: str, error: type[Exception] | None = None) -> Any:
    retrievers = pytest.importorskip("langchain_core.retrievers", reason="langchain-core is not installed")
    from langchain_core.documents import Document

    class Fixed(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            if error is not None:
                raise error
            return [Document("text", id=one) for one in ids]

    return Fixed()


def model() -> Any:
    models = pytest.importorskip("langchain_core.language_models", reason="langchain-core is not installed")
    return models.FakeListChatModel(responses=["yes"])


def by_langchain(*ids: str) -> None:
    langchain_retriever(*ids).invoke(ASKED)


def by_decorator(*ids: str) -> None:
    search(ASKED, *ids)


CALLS: dict[str, Callable[..., None]] = {"LangChain": by_langchain, "decorated": by_decorator}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@calls
def test_a_scope_that_is_used_again_shows_what_was_found_then(
    call: Callable[..., None], events: CapturedEvents
) -> None:
    with sf_rag.session(ASKED):
        scope = sf_rag.retrieval()
        for name in "abc":
            with scope:
                call(name)
            assert scope.chunk_ids == [name]
    assert [ids_of(found) for found in events.of_type("llm.rag.retrieved")] == [["a"], ["b"], ["c"]]


def test_a_scope_that_is_used_again_says_what_is_said_then(events: CapturedEvents) -> None:
    with sf_rag.session(ASKED):
        scope = sf_rag.retrieval(ranking_method="bm25")
        with scope:
            scope.record([{"id": "a"}], status="partial")
        with scope:
            scope.add({"id": "b"})
        with scope:
            search(ASKED, "c")
        with sf_rag.generation("m") as generation:
            generation.record(output_tokens=3)
        with generation:
            pass
    found = events.of_type("llm.rag.retrieved")
    assert [(ids_of(one), one["status"]) for one in found] == [(["a"], "partial"), (["b"], "ok"), (["c"], "ok")]
    assert {one["ranking_method"] for one in found} == {"bm25"}
    assert [one.get("output_tokens") for one in events.of_type("llm.rag.generated")] == [3, None]


@pytest.mark.parametrize("how", ["add", "found"])
def test_what_comes_after_a_scope_was_left_changes_no_event(how: str, events: CapturedEvents) -> None:
    with sf_rag.session(ASKED), sf_rag.retrieval() as scope:
        scope.add({"id": "a"}) if how == "add" else scope.found([{"id": "a"}])
    scope.add({"id": "b"})
    scope.found([{"id": "c"}])
    assert [ids_of(found) for found in events.of_type("llm.rag.retrieved")] == [["a"]]


@calls
def test_a_scope_that_nobody_can_leave_any_more_is_counted_and_takes_nothing_more(
    call: Callable[..., None], events: CapturedEvents
) -> None:
    before = sf_rag.get_status().replaced.get("scope_not_left", 0)

    def open_only() -> None:
        scope = sf_rag.retrieval()
        scope.__enter__()
        call("a")

    def all_of_it() -> None:
        with sf_rag.session(ASKED):
            open_only()
            gc.collect()
            assert sf_rag.current_scope() is None
            assert sf_rag.get_status().replaced["scope_not_left"] == before + 1
            call("b")

    copy_context().run(all_of_it)
    assert [ids_of(found) for found in events.of_type("llm.rag.retrieved")] == [["b"]]


FAILURES: dict[str, Callable[[], Any]] = {
    "LangChain": lambda: langchain_retriever(error=ValueError).invoke(ASKED),
    "decorated": lambda: fail(ASKED),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_that_the_application_goes_on_from_is_the_retrievals(name: str, events: CapturedEvents) -> None:
    with sf_rag.session(ASKED), sf_rag.retrieval(), pytest.raises(ValueError):  # noqa: PT011  it says nothing
        FAILURES[name]()
    (found,) = events.of_type("llm.rag.retrieved")
    assert (found["status"], found["error_message"], ids_of(found)) == ("error", "ValueError", [])


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_that_another_call_made_good_is_none(name: str, is_last: bool, events: CapturedEvents) -> None:
    with sf_rag.session(ASKED), sf_rag.retrieval():
        if is_last:
            CALLS[name]("a")
        with pytest.raises(ValueError):  # noqa: PT011  it says nothing
            FAILURES[name]()
        if not is_last:
            CALLS[name]("a")
    (found,) = events.of_type("llm.rag.retrieved")
    assert (found["status"], found.get("error_message"), ids_of(found)) == ("ok", None, ["a"])


def test_what_a_block_says_of_its_outcome_counts(events: CapturedEvents) -> None:
    with sf_rag.session(ASKED), sf_rag.retrieval() as scope:
        scope.record((), status="partial")
        with pytest.raises(TimeoutError):
            fail(ASKED, TimeoutError)
    (found,) = events.of_type("llm.rag.retrieved")
    assert found["status"] == "partial"


def test_of_two_reranks_the_last_order_counts(events: CapturedEvents) -> None:
    run = Run(ASKED)
    with sf_rag.session(ASKED), sf_rag.rerank("mine"):
        run.rerank(3).finish([{"id": "a", "score": 0.2}, {"id": "b", "score": 0.1}])
        run.rerank(2).fail(ValueError())
        run.rerank(2).finish([{"id": "b", "score": 0.9}])
    run.end()
    (found,) = events.of_type("llm.rag.reranked")
    assert (ids_of(found), found["model"], found["status"]) == (["b"], "mine", "ok")


def test_two_searches_within_a_retrieval_keep_their_scores(events: CapturedEvents) -> None:
    with sf_rag.session(ASKED), sf_rag.retrieval():
        search(ASKED, "a", "b")
        search("another question", "c", "d")
    (found,) = events.of_type("llm.rag.retrieved")
    assert {chunk["chunk_id"]: chunk.get("score") for chunk in found["chunks"]} == {
        "a": 0.9, "b": 0.8, "c": 0.9, "d": 0.8,
    }  # fmt: skip
    (first, _second) = events.of_type("llm.rag.query")
    assert (found["total_found"], found["query_hash"]) == (4, first["query_hash"])


def test_what_threads_find_side_by_side_is_all_found(events: CapturedEvents) -> None:
    both = threading.Barrier(2, timeout=20)

    class Slow:
        def __init__(self, name: str) -> None:
            self._name = name

        @property
        def id(self) -> str:
            both.wait()
            return self._name

    @trace_rag
    def find(query: str) -> list[Any]:
        return [Slow(query)]

    with sf_rag.session(ASKED), sf_rag.retrieval() as scope:
        threads = [threading.Thread(target=copy_context().run, args=(find, name)) for name in "ab"]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert sorted(scope.chunk_ids) == ["a", "b"]
    (found,) = events.of_type("llm.rag.retrieved")
    assert sorted(ids_of(found)) == ["a", "b"]


@pytest.mark.parametrize("kind", ["retrieved", "generated"])
def test_a_scope_within_a_step_of_a_run_is_in_the_runs_session(kind: str, events: CapturedEvents) -> None:
    ask = langchain_retriever("a")
    from langchain_core.runnables import RunnableLambda

    def step(asked: str) -> str:
        with sf_rag.retrieval() if kind == "retrieved" else sf_rag.generation("mine"):
            ask.invoke(asked) if kind == "retrieved" else model().invoke(asked)
        return asked

    before = sf_rag.get_status().orphans
    RunnableLambda(step).invoke(ASKED)
    assert sf_rag.get_status().orphans == before
    assert [event.event_type.rpartition(".")[2] for event in events.all] == ["query", kind, "session"]
    assert len({event.session_id for event in events.all}) == 1


def test_a_scope_that_is_left_before_its_stream_is_read_is_in_the_runs_session(events: CapturedEvents) -> None:
    with sf_rag.generation("mine"):
        pieces = model().stream(ASKED)
        next(pieces)
    list(pieces)
    assert [event.event_type.rpartition(".")[2] for event in events.all] == ["query", "generated", "session"]
    assert len({event.session_id for event in events.all}) == 1


def paused_within_langchain() -> None:
    inner = langchain_retriever("a")
    from langchain_core.runnables import RunnableLambda

    def step(asked: str) -> str:
        with auto.paused():
            inner.invoke(asked)
        return asked

    (RunnableLambda(step) | model()).invoke(ASKED)


def paused_within_llama_index() -> None:
    retrievers = pytest.importorskip("llama_index.core.retrievers", reason="llama-index-core is not installed")
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import CustomQueryEngine
    from llama_index.core.schema import NodeWithScore, TextNode

    class Fixed(retrievers.BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            return [NodeWithScore(node=TextNode(text="text", id_="a"), score=0.5)]

    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            with auto.paused():
                Fixed().retrieve(query_str)
            return str(MockLLM().complete(query_str))

    Engine().query(ASKED)


def paused_within_haystack() -> None:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")

    @haystack.component
    class FixedRetriever:
        @haystack.component.output_types(documents=list)
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": [haystack.Document(content="text", id="a")]}

    @haystack.component
    class EchoGenerator:
        @haystack.component.output_types(replies=list)
        def run(self, prompt: str) -> dict[str, Any]:
            inner = haystack.Pipeline()
            inner.add_component("retriever", FixedRetriever())
            with auto.paused():
                inner.run({"retriever": {"query": prompt}})
            return {"replies": [prompt]}

    pipeline = haystack.Pipeline()
    pipeline.add_component("generator", EchoGenerator())
    pipeline.run({"generator": {"prompt": ASKED}})


@pytest.mark.parametrize("call", [paused_within_langchain, paused_within_llama_index, paused_within_haystack])
def test_paused_within_a_run_traces_nothing_of_the_block(call: Callable[[], None], events: CapturedEvents) -> None:
    call()
    assert [event.event_type.rpartition(".")[2] for event in events.all] == ["query", "generated", "session"]
