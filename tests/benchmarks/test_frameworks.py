"""What tracing a run by `setup()` costs the process, beside OpenInference and scopes by hand.

Like is set beside like: each in turn traces the same run, from within it, and the delivery and the threads that a
framework runs parts in are counted. In a loop of nothing else scopes cost half of what they do here, and so do the
hooks, for the processor then has all that they need at hand.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.measuring import CountingExporter, provider_of

from spanforge import auto
from spanforge.sdk import configure, sf_rag
from spanforge.sinks.memory import MemorySink

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

BLOCKS, RUNS = 15, 60
TEXTS = {str(n): f"text {n} " * 20 for n in range(5)}


def found(documents: list[Any]) -> list[Any]:
    """Return what a retriever finds, recorded by hand inside a session that was opened by hand."""
    if sf_rag.current_session_id() is not None:
        with sf_rag.retrieval() as retrieval:
            retrieval.record(documents)
    return documents


def chain() -> Callable[[], object]:
    from langchain_core.documents import Document
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough

    documents = [Document(text, id=name, metadata={"source": "s"}) for name, text in TEXTS.items()]

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return found(documents)

    prompt = ChatPromptTemplate.from_template("{documents} {question}")
    made = {"documents": Fixed(), "question": RunnablePassthrough()} | prompt | FakeListChatModel(responses=["Yes."])
    return lambda: made.invoke("what?")


def engine() -> Callable[[], object]:
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [NodeWithScore(node=TextNode(text=text, id_=name), score=0.5) for name, text in TEXTS.items()]

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):
            return found(nodes)

    made = RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM())
    return lambda: made.query("what?")


def by_hand(ask: Callable[[], object]) -> None:
    with sf_rag.session("what?", retriever_name="Fixed") as session, session.generation("fake") as generation:
        ask()
        generation.record(chunk_ids_used=list(TEXTS))


def cost(work: Callable[[], object], deliver: Callable[[], object] = lambda: None) -> float:
    started = time.process_time_ns()
    for _ in range(RUNS):
        work()
    deliver()
    return (time.process_time_ns() - started) / RUNS / 1000


FRAMEWORKS = {"langchain": (chain, "LangChainInstrumentor"), "llama_index": (engine, "LlamaIndexInstrumentor")}


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_added_to_a_run(name: str) -> None:
    make, instrumentor_name = FRAMEWORKS[name]
    openinference = pytest.importorskip(
        f"openinference.instrumentation.{name}", reason="OpenInference's instrumentor is not installed"
    )
    ask = make()
    configure(sinks=[MemorySink(limit=10)], queue_events=1_000_000)
    provider, instrumentor = provider_of(CountingExporter()), getattr(openinference, instrumentor_name)()
    plain: list[float] = []
    declined: list[float] = []
    ours: list[float] = []
    theirs: list[float] = []
    manual: list[float] = []
    cost(ask)
    for _ in range(BLOCKS):
        plain.append(cost(ask))
        auto.setup({name})
        ours.append(cost(ask, sf_rag.flush))
        with auto.paused():
            declined.append(cost(ask))
        auto.teardown()
        instrumentor.instrument(tracer_provider=provider)
        theirs.append(cost(ask, provider.force_flush))
        instrumentor.uninstrument()
        manual.append(cost(lambda: by_hand(ask), sf_rag.flush))
    provider.shutdown()
    base = statistics.median(plain)
    added, floor, other, scopes = (statistics.median(taken) - base for taken in (ours, declined, theirs, manual))
    print(f"\n{name}: ours +{added:.0f} µs a run, {floor:.0f} of it for handlers that decline everything;")  # noqa: T201
    print(f"{name}: OpenInference +{other:.0f} µs, scopes by hand +{scopes:.0f} µs")  # noqa: T201
    assert added <= 0.35 * other
    # What a framework takes to tell anybody anything is its own.
    assert added - floor <= 1.25 * scopes
