"""`@trace_rag` on every kind of function, with the real ids and scores of what is returned."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import inspect
import sys

import pytest

from spanforge.auto import trace_rag
from spanforge.exceptions import UnknownSessionError
from spanforge.sdk import sf_rag
from spanforge.testing import capture

HITS = [{"id": "a", "score": 0.9, "text": "first"}, {"id": 7, "score": 0.4, "text": "second"}]


@pytest.fixture
def events():
    with capture() as captured:
        yield captured


def _retrieved(events):
    [retrieved] = events.of_type("llm.rag.retrieved")
    return retrieved


def _ids_and_scores(events):
    return [(chunk["chunk_id"], chunk["score"]) for chunk in _retrieved(events)["chunks"]]


class Store:
    @trace_rag
    def search(self, limit: int, query: str):
        return HITS[:limit]

    @classmethod
    @trace_rag
    def search_class(cls, query: str):
        return HITS

    @staticmethod
    @trace_rag
    def search_static(query: str):
        return HITS


@trace_rag
def search(query: str, *, limit: int = 2):
    """Find things."""
    return HITS[:limit]


@trace_rag
async def search_async(query: str):
    await asyncio.sleep(0)
    return HITS


@trace_rag
def search_lazily(query: str):
    assert sf_rag.current_session_id() is not None
    yield from HITS


@trace_rag
async def search_stream(query: str):
    for hit in HITS:
        yield hit


async def _collect(stream):
    return [hit async for hit in stream]


@pytest.mark.parametrize(
    "call",
    [
        lambda: search("q"),
        lambda: search(query="q"),
        lambda: Store().search(2, "q"),
        lambda: Store.search_class("q"),
        lambda: Store.search_static("q"),
        lambda: asyncio.run(search_async("q")),
        lambda: list(search_lazily("q")),
        lambda: asyncio.run(_collect(search_stream("q"))),
        lambda: trace_rag(functools.partial(lambda limit, query: HITS[:limit], 2))("q"),
        lambda: list(trace_rag(lambda query: iter(HITS))("q")),
    ],
)
def test_what_is_returned_is_traced_and_returned(events, call):
    assert call() == HITS
    assert _ids_and_scores(events) == [("a", 0.9), ("7", 0.4)]
    assert events.of_type("llm.rag.session")[0]["total_chunks_retrieved"] == 2
    events.assert_no_text("first", "second")


def test_an_awaitable_from_a_plain_function_is_traced_when_it_is_awaited(events):
    async def inner(query):
        return HITS

    async def run():
        return await trace_rag(lambda query: inner(query))("q")  # noqa: PLW0108  inner is a coroutine function, this is not

    assert asyncio.run(run()) == HITS
    assert _ids_and_scores(events) == [("a", 0.9), ("7", 0.4)]


def test_the_query_is_found_by_name_or_place(events):
    query_hash = sf_rag.cell.get().cleaner.hasher.digest("q")
    Store().search(2, "q")
    search(query="q")
    assert [query["query_hash"] for query in events.of_type("llm.rag.query")] == [query_hash, query_hash]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda: trace_rag(lambda limit, text: HITS)(2, "q"), "q"),
        (lambda: trace_rag(lambda text, query: HITS)("other", "q"), "q"),
        (lambda: trace_rag(lambda needle, limit: HITS)("q", 2), "q"),
        (lambda: trace_rag(lambda limit, *, question: HITS)(2, question="q"), "q"),
        (trace_rag(lambda query="left to the default": HITS), ""),
        (lambda: trace_rag(lambda **anything: HITS)(query="q"), ""),
    ],
)
def test_the_query_is_found_by_the_rule_that_is_documented(events, call, found):
    call()
    [query] = events.of_type("llm.rag.query")
    assert query["query_hash"] == sf_rag.cell.get().cleaner.hasher.digest(found)


def test_inspection_of_the_wrapped_function_still_holds():
    assert search.__doc__ == "Find things."
    assert list(inspect.signature(search).parameters) == ["query", "limit"]
    assert inspect.iscoroutinefunction(search_async)
    assert inspect.isgeneratorfunction(search_lazily)
    assert inspect.isasyncgenfunction(search_stream)


def test_keywords_name_the_retriever(events):
    trace_rag(retriever_name="mine", namespace="n")(lambda query: HITS)("q")
    [query] = events.of_type("llm.rag.query")
    assert (query["retriever_name"], query["namespace"]) == ("mine", "n")


@pytest.mark.parametrize("error", [ValueError("secret text"), TimeoutError("secret text"), KeyError("secret text")])
def test_errors_are_recorded_by_class_and_raised_as_they_are(events, error):
    def fail(query):
        raise error

    with pytest.raises(type(error)) as raised:
        trace_rag(fail)("q")
    assert raised.value is error
    assert _retrieved(events)["error_message"] == type(error).__name__
    assert _retrieved(events)["status"] == ("timeout" if isinstance(error, TimeoutError) else "error")
    assert events.of_type("llm.rag.session")[0]["status"] == "error"
    events.assert_no_text("secret text")


@pytest.mark.parametrize("error", [KeyError("mine"), UnknownSessionError(), StopAsyncIteration()])
def test_no_error_of_any_kind_of_function_is_taken_for_ours(events, error):
    @trace_rag
    def stream(query):
        yield HITS[0]
        raise error

    @trace_rag
    async def answer(query):
        raise error

    for call in (lambda: list(stream("q")), lambda: asyncio.run(answer("q"))):
        with pytest.raises(type(error)) as raised:
            call()
        assert raised.value is error


def test_inside_a_session_it_joins_it(events):
    with sf_rag.session("outer") as session:
        search("q")
    assert {event.session_id for event in events} == {session.session_id}
    assert session.summary.total_queries == 2


def test_two_instrumentors_on_one_call_make_one_event(events):
    trace_rag(search)("q")
    assert len(events.of_type("llm.rag.retrieved")) == 1


def test_a_stream_leaves_its_consumers_context_alone(events):
    for _ in search_lazily("q"):
        assert sf_rag.current_session_id() is None
        search("q")
    assert len(events.of_type("llm.rag.retrieved")) == 3


def test_a_stream_that_is_left_early_is_traced_as_far_as_it_went(events):
    stream = search_lazily("q")
    next(stream)
    stream.close()
    assert _ids_and_scores(events) == [("a", 0.9)]
    assert _retrieved(events)["status"] == "ok"


def test_an_async_stream_that_is_abandoned_is_traced_as_far_as_it_went(events):
    async def run():
        async for _ in search_stream("q"):
            break
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(run())
    assert _ids_and_scores(events) == [("a", 0.9)]


def test_a_coroutine_that_is_collected_while_it_waits_ends_without_a_word(events, monkeypatch):
    @trace_rag
    async def wait_for_ever(query):
        await asyncio.get_running_loop().create_future()

    def begin_and_forget():
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            # Driven by hand, because a runner cancels the tasks that are left.
            waiting = wait_for_ever("q")
            loop.call_soon(contextvars.Context().run, waiting.send, None)
            loop.call_soon(loop.stop)
            loop.run_forever()

    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    begin_and_forget()
    gc.collect()
    assert said == []
    assert _retrieved(events)["status"] == "ok"
    assert events.of_type("llm.rag.session")[0]["status"] == "ok"


def test_a_function_of_c_that_tells_no_signature_is_traced_too():
    with capture(strict=False) as captured:
        assert trace_rag(max)([HITS, []], key=len) is HITS
        assert [chunk["chunk_id"] for chunk in _retrieved(captured)["chunks"]] == ["a", "7"]


def test_a_detail_that_no_query_has_costs_only_itself():
    with capture(strict=False) as captured:
        assert trace_rag(top_n=5, namespace="n")(lambda query: HITS)("q") is HITS
        assert captured.of_type("llm.rag.query")[0]["namespace"] == "n"
        assert len(captured.of_type("llm.rag.retrieved")) == 1
    assert sf_rag.get_status().replaced["trace_query_unknown_argument"] >= 1
