"""Calls where the stack is nearly used up: a recursive parser, a deep agent."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import pytest

from spanforge._guard import out_of_stack
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import SFRAGClient, sf_feedback
from spanforge.sdk.propagation import extract, inject
from spanforge.sinks.memory import MemorySink

Connect = Callable[..., SFRAGClient]


@pytest.fixture(autouse=True)
def _counts_of_its_own() -> Iterator[None]:
    """What a process counts of such calls is nothing that other tests expect."""
    before = out_of_stack[0]
    yield
    out_of_stack[0] = before


def plain(frames: int = 3) -> None:
    if frames > 1:
        plain(frames - 1)


def at_depth(depth: int, call: Callable[[], Any]) -> Any:
    return at_depth(depth - 1, call) if depth else call()


def depths() -> list[int]:
    """Return how deep one can go so that there is room for three plain calls, and for little more."""
    found: list[int] = []
    for depth in range(sys.getrecursionlimit() - 130, sys.getrecursionlimit()):
        try:
            at_depth(depth, plain)
        except RecursionError:
            break
        found.append(depth)
    return found


def scope(client: SFRAGClient) -> None:
    with client.session("q", session_id="own") as session, session.retrieval() as retrieval:
        retrieval.record([{"chunk_id": "a", "score": 0.5, "source": "s"}])
        retrieval.add({"chunk_id": "b"})


CALLS: dict[str, Callable[[SFRAGClient], Any]] = {
    "trace_query": lambda client: client.trace_query("q", session_id="s"),
    "trace_retrieval": lambda client: client.trace_retrieval("s", [{"id": "a", "text": "t", "metadata": {"k": [1]}}]),
    "trace_rerank": lambda client: client.trace_rerank("s", "m", chunks=[("text", 0.5)]),
    "trace_generation": lambda client: client.trace_generation("s", "m", chunk_ids_used=["a"], grounding_score=0.5),
    "trace_evaluation": lambda client: client.trace_evaluation("s", faithfulness=0.5),
    "escalate": lambda client: client.escalate("s", "r"),
    "get_session": lambda client: client.get_session("s"),
    "join_session": lambda client: client.join_session("s"),
    "get_status": lambda client: client.get_status(),
    "flush": lambda client: client.flush(0),
    "bind": lambda client: client.bind(org_id="a").__exit__(None, None, None),
    "attach": lambda client: client.attach("s").__enter__().__exit__(None, None, None),
    "generation": lambda client: client.generation("m").__enter__().first_token(),
    "session": scope,
    "current_session_id": lambda client: client.current_session_id(),
    "aflush": lambda client: [*client.aflush(0).__await__()],  # which awaits it, and takes no frame to
    "submit": lambda _client: sf_feedback.submit("s", rating="star_1"),
    "get_feedback": lambda _client: list(sf_feedback.get_feedback("s")),
    "get_summary": lambda _client: sf_feedback.get_summary("s").total_feedback,
    "feedback's get_status": lambda _client: sf_feedback.get_status().status,
    "inject": lambda _client: inject({}, "s"),
    "extract": lambda _client: extract({"baggage": "spanforge.session_id=s"}),
    "too many arguments": lambda client: client.trace_generation("s", "m", 1, 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_call_raises_however_little_stack_is_left(connect: Connect, sink: MemorySink, name: str) -> None:
    # A worker has a stack of its own; in line, a sink may find none left, which is a delivery that failed.
    client = connect(sink, delivery="thread", batch_delay_s=0)
    sf_feedback.cell.configure({"sinks": "memory", "delivery": "sync"})
    client.trace_query("q", session_id="s")

    def call_everywhere() -> None:
        CALLS[name](client)
        for depth in depths():
            at_depth(depth, lambda: CALLS[name](client))

    # In a context of its own: what is entered with no stack left to leave it stays there.
    copy_context().run(call_everywhere)
    summary = client.end_session("s")
    assert client.flush(10) == 0
    assert client.get_status().sinks["memory"].balanced
    kinds = Counter(event.event_type for event in sink.events if event.session_id == "s")
    assert summary.total_queries == kinds["llm.rag.query"]
    assert summary.generation_count == kinds["llm.rag.generated"]
    assert summary.retrieval_count == kinds["llm.rag.retrieved"]


def test_a_session_whose_end_found_no_stack_can_be_ended_later(connect: Connect, sink: MemorySink) -> None:
    client, tried = connect(sink, delivery="thread", batch_delay_s=0), depths()
    assert len(tried) > 20
    for number, depth in enumerate(tried):
        client.trace_query("q", session_id=f"s{number}")
        said = at_depth(depth, lambda number=number: client.end_session(f"s{number}"))
        assert isinstance(said, RAGSessionPayload)
        assert client.end_session(f"s{number}").total_queries == 1
    assert client.flush(10) == 0
    assert len(sink.of_type("llm.rag.session")) == len(tried)
