"""Blocks that time themselves, in every way a block can be entered and left."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace

import pytest

from spanforge.namespaces.event import Event
from spanforge.sdk import SFRAGClient
from spanforge.sinks.base import BaseSink
from spanforge.sinks.memory import MemorySink

Connect = Callable[..., SFRAGClient]


def of(sink: MemorySink, kind: str) -> list[dict[str, object]]:
    return sink.of_type(f"llm.rag.{kind}")


def test_a_session_is_opened_timed_and_ended_by_its_block(strict: SFRAGClient, sink: MemorySink) -> None:
    with strict.session("q", top_k=3, retriever_name="r") as session:
        with session.retrieval(ranking_method="bm25") as retrieval:
            retrieval.record([{"chunk_id": "a", "score": 0.5, "source": "s"}], total_found=9)
        with session.rerank("ranker") as rerank:
            rerank.record([{"chunk_id": "a", "score": 0.9, "source": "s"}])
        with session.generation("m") as generation:
            generation.first_token()
            generation.first_token()
            generation.record(prompt_tokens=3, chunk_ids_used=["a"])
            generation.record(output_tokens=4)
        assert session.summary is None
    assert [event.event_type.rpartition(".")[2] for event in sink.events] == [
        "query", "retrieved", "reranked", "generated", "session",
    ]  # fmt: skip
    assert session.summary is not None
    assert session.summary.status == "ok"
    assert session.summary.total_input_tokens == 3
    assert of(sink, "retrieved")[0]["total_found"] == 9
    generated = of(sink, "generated")[0]
    assert 0 <= generated["time_to_first_token_ms"] <= generated["latency_ms"]  # type: ignore[operator]
    assert strict.get_status().active_sessions == 0


def test_calls_without_an_id_find_the_session_of_the_block(strict: SFRAGClient, sink: MemorySink) -> None:
    with strict.session("q") as session:
        assert strict.current_session_id() == session.session_id
        strict.trace_query("a better question")
        strict.trace_retrieval(chunks=[])
        strict.trace_generation(model="m")
        strict.trace_evaluation(faithfulness=1.0)
        strict.trace_rerank(model="m")
        strict.escalate(rule="r")
        assert strict.get_session() is not None
    assert {event.session_id for event in sink.events} == {session.session_id}
    assert session.summary is not None
    assert session.summary.total_queries == 2
    assert strict.current_session_id() is None


def test_blocks_within_blocks_are_sessions_of_their_own(strict: SFRAGClient) -> None:
    with strict.session("q") as outer:
        with strict.session("q") as inner:
            assert strict.current_session_id() == inner.session_id != outer.session_id
        assert strict.current_session_id() == outer.session_id


@pytest.mark.parametrize(
    ("error", "status"), [(ValueError, "error"), (TimeoutError, "timeout"), (KeyboardInterrupt, "error")]
)
def test_an_error_is_recorded_by_its_class_and_goes_on(
    error: type[BaseException], status: str, strict: SFRAGClient, sink: MemorySink
) -> None:
    with pytest.raises(error), strict.session("q") as session, session.generation("m"):
        raise error("text")
    assert of(sink, "generated")[0]["status"] == status
    assert of(sink, "generated")[0]["error_message"] == error.__name__
    assert session.summary is not None
    assert (session.summary.status, session.summary.error_type) == ("error", error.__name__)


def test_an_error_between_two_stages_is_the_sessions(strict: SFRAGClient) -> None:
    with pytest.raises(LookupError), strict.session("q") as session:
        raise LookupError
    assert session.summary is not None
    assert (session.summary.status, session.summary.error_type) == ("error", "LookupError")
    assert session.summary.error_count == 0


@pytest.mark.parametrize("name", ["text that was asked", "E" * 1_000, "line\nbreak"])
def test_an_error_whose_class_is_made_of_text_has_no_name(name: str, strict: SFRAGClient, sink: MemorySink) -> None:
    made_of_text = type(name, (Exception,), {})
    with pytest.raises(made_of_text), strict.session("q") as session, session.generation("m"):
        raise made_of_text
    assert of(sink, "generated")[0]["error_message"] == of(sink, "session")[0]["error_type"] == "class"


def test_a_session_that_was_ended_inside_its_block_is_ended_once(strict: SFRAGClient, sink: MemorySink) -> None:
    with strict.session("q") as session:
        strict.end_session()
    assert len(of(sink, "session")) == 1
    assert session.summary is not None


def test_a_scope_may_be_used_again(client: SFRAGClient, sink: MemorySink) -> None:
    session, stage = client.session("q"), client.generation("m", "s")
    for _ in range(2):
        with session, stage:
            pass
    assert len(of(sink, "session")) == len(of(sink, "generated")) == 2


def test_a_scope_that_is_entered_within_itself_is_two_sessions_and_ends_both(
    strict: SFRAGClient, sink: MemorySink
) -> None:
    scope = strict.session("q")
    with scope:
        outer = strict.current_session_id()
        with scope:
            inner = strict.current_session_id()
        assert scope.summary is not None
        assert scope.summary.session_id == inner != outer == strict.current_session_id()
    assert {payload["session_id"] for payload in of(sink, "session")} == {outer, inner}
    assert strict.get_status().active_sessions == 0
    assert strict.current_session_id() is None


def test_an_attached_session_may_be_attached_within_itself(strict: SFRAGClient) -> None:
    session_id = strict.trace_query("q")
    scope = strict.attach(session_id)
    with scope, scope:
        pass
    scope.__exit__(None, None, None)  # once too often, as a careless ExitStack may
    assert strict.current_session_id() is None


def test_a_block_that_outlives_the_one_around_it_stays_current_until_it_is_left(strict: SFRAGClient) -> None:
    """Generators are closed when they are, and not when their block would end."""
    first = stream(strict)
    next(first)
    outer = strict.current_session_id()
    second = stream(strict)
    next(second)
    inner = strict.current_session_id()
    assert inner != outer
    first.close()  # type: ignore[attr-defined]
    assert strict.current_session_id() == inner
    second.close()  # type: ignore[attr-defined]
    assert strict.current_session_id() is None
    assert strict.trace_query("of no session") not in {outer, inner}


def test_a_block_that_is_left_in_another_context_is_left_in_its_own_too(strict: SFRAGClient) -> None:
    its_own = contextvars.copy_context()
    scope, binding = strict.session("q"), its_own.run(strict.bind, org_id="a")
    its_own.run(scope.__enter__)
    assert its_own.run(strict.current_session_id) == scope.session_id
    scope.__exit__(None, None, None)
    binding.__exit__(None, None, None)
    assert its_own.run(strict.current_session_id) is None
    with its_own.run(strict.session, "q") as again:
        assert again.session_id != scope.session_id


def test_a_stage_that_is_used_again_belongs_to_the_session_it_is_in_then(strict: SFRAGClient, sink: MemorySink) -> None:
    stage = strict.generation("m")
    for name in "ab":
        with strict.session("q", session_id=name), stage:
            pass
    assert [payload["session_id"] for payload in of(sink, "generated")] == ["a", "b"]


def test_a_block_that_is_left_too_often_was_left_once(strict: SFRAGClient, sink: MemorySink) -> None:
    session, stage = strict.session("q"), strict.generation("m", "s")
    with session, stage:
        pass
    for scope in (session, stage):
        scope.__exit__(None, None, None)
    assert len(of(sink, "session")) == len(of(sink, "generated")) == 1


async def test_async_blocks_and_tasks_carry_the_session(strict: SFRAGClient, sink: MemorySink) -> None:
    async def stage() -> None:
        async with strict.generation("m"):
            await asyncio.sleep(0)

    async with strict.session("q") as session:
        await asyncio.gather(*[asyncio.create_task(stage()) for _ in range(3)])
    assert [payload["session_id"] for payload in of(sink, "generated")] == [session.session_id] * 3


async def test_tasks_side_by_side_do_not_see_each_others_session(strict: SFRAGClient, sink: MemorySink) -> None:
    async def run() -> None:
        async with strict.session("q") as session:
            await asyncio.sleep(0.001)
            strict.trace_generation(model="m")
            assert strict.current_session_id() == session.session_id

    await asyncio.gather(run(), run(), run())
    assert len({payload["session_id"] for payload in of(sink, "generated")}) == 3


async def test_a_cancelled_task_ends_its_session(strict: SFRAGClient, sink: MemorySink) -> None:
    async def run() -> None:
        async with strict.session("q"):
            await asyncio.sleep(60)

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert of(sink, "session")[0]["error_type"] == "CancelledError"


def test_a_copied_context_carries_the_session_into_a_thread(strict: SFRAGClient, sink: MemorySink) -> None:
    with strict.session("q") as session:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(lambda: strict.trace_generation(model="m"),))
        thread.start()
        thread.join()
    assert of(sink, "generated")[0]["session_id"] == session.session_id


def test_attach_makes_a_session_current_where_its_context_is_not(strict: SFRAGClient, sink: MemorySink) -> None:
    session_id = strict.trace_query("q")

    def elsewhere() -> None:
        with strict.attach(session_id):
            strict.trace_generation(model="m")
        assert strict.current_session_id() is None

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert of(sink, "generated")[0]["session_id"] == session_id
    assert strict.get_session(session_id) is not None


def stream(client: SFRAGClient) -> Iterator[int]:
    with client.session("q"), client.generation(model="m") as generation:
        for token in range(10):
            generation.first_token()
            yield token


def test_a_stream_closed_in_another_context_ends_its_stage_and_session(strict: SFRAGClient, sink: MemorySink) -> None:
    tokens = stream(strict)
    contextvars.Context().run(next, tokens)
    contextvars.Context().run(tokens.close)  # type: ignore[attr-defined]
    assert of(sink, "generated")[0]["status"] == "ok"
    assert of(sink, "generated")[0]["session_id"] == of(sink, "session")[0]["session_id"]
    assert "error_type" not in of(sink, "session")[0]


def test_a_stream_that_is_broken_out_of_and_collected_ends(strict: SFRAGClient, sink: MemorySink) -> None:
    for token in stream(strict):
        if token == 2:
            break
    gc.collect()
    assert len(of(sink, "session")) == 1


async def test_an_async_stream_that_is_dropped_ends_when_the_loop_closes_it(
    strict: SFRAGClient, sink: MemorySink
) -> None:
    async def tokens() -> AsyncIterator[int]:
        async with strict.session("q"), strict.generation(model="m"):
            for token in range(10):
                yield token

    async def consume() -> None:
        async for token in tokens():
            if token == 2:
                break

    await asyncio.create_task(consume())
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(of(sink, "session")) == len(of(sink, "generated")) == 1
    assert of(sink, "session")[0]["status"] == "ok"


async def test_an_async_stream_that_is_closed_by_another_task_ends_true_in_time_and_place(
    strict: SFRAGClient, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    monkeypatch.setattr(asyncio.get_running_loop(), "call_exception_handler", said.append)

    async def tokens() -> AsyncIterator[int]:
        async with strict.session("q") as session, session.generation("m"):
            for token in range(10):
                yield token

    async def close() -> None:
        await asyncio.sleep(0.05)
        await stream.aclose()  # type: ignore[attr-defined]

    stream = tokens()
    await anext(stream)
    await asyncio.create_task(close())
    query, generated, summary = sink.events
    assert (generated.payload["status"], summary.payload["status"]) == ("ok", "ok")
    assert 50 <= generated.payload["latency_ms"] <= summary.payload["duration_ms"]
    assert query.parent_span_id == generated.parent_span_id == summary.span_id
    assert {event.trace_id for event in sink.events} == {query.trace_id}
    assert strict.current_session_id() is None
    assert said == []


async def test_a_thread_has_the_session_where_python_copies_the_context_and_not_in_an_executor(
    client: SFRAGClient, sink: MemorySink
) -> None:
    async with client.session("q") as session:
        await asyncio.to_thread(client.trace_generation, model="m")
        await asyncio.get_running_loop().run_in_executor(None, partial(client.trace_generation, model="m"))
    first, second = (payload["session_id"] for payload in of(sink, "generated"))
    assert first == session.session_id != second
    assert client.get_status().orphans == 1


def test_hits_are_read_when_they_are_recorded(strict: SFRAGClient, sink: MemorySink) -> None:
    hit = {"chunk_id": "a", "score": 0.5, "source": "s"}
    with strict.session("q") as session, session.retrieval() as retrieval:
        retrieval.add(hit)
        retrieval.add({"chunk_id": "b", "score": 2.0}, {"chunk_id": "c", "score": 0.25})
        hit["chunk_id"] = "changed"
    assert [chunk["chunk_id"] for chunk in of(sink, "retrieved")[0]["chunks"]] == ["a", "b", "c"]  # type: ignore[attr-defined]
    assert of(sink, "retrieved")[0]["score_rule"] == "saturating"


def test_a_stage_outside_of_any_session_is_an_orphan(client: SFRAGClient, sink: MemorySink) -> None:
    with client.generation(model="m"):
        pass
    assert client.get_status().orphans == 1
    assert client.get_status().replaced == {"session_id_missing": 1}
    assert len(of(sink, "generated")) == 1


# -- bind -----------------------------------------------------------------------------------------------------------


def test_bind_says_for_whom_events_are_made(strict: SFRAGClient, sink: MemorySink) -> None:
    with strict.bind(org_id="acme", tenant="a"):
        session_id = strict.trace_query("q")
        with strict.bind(team_id="search", tenant="b", colour="red"):
            strict.trace_generation(session_id, "m")
    strict.trace_generation(session_id, "m")
    strict.end_session(session_id)
    query, inner, outer, summary = sink.events
    assert (query.org_id, query.tags) == ("acme", {"tenant": "a"})
    assert (inner.org_id, inner.team_id, inner.tags) == ("acme", "search", {"tenant": "b", "colour": "red"})
    assert (outer.org_id, outer.tags) == ("", {})
    assert (summary.org_id, summary.tags) == ("acme", {"tenant": "a"})


def test_what_is_bound_is_captured_when_the_event_is_made_and_not_when_it_is_sent(connect: Connect) -> None:
    sink, gate = MemorySink(), threading.Event()

    class Gated(BaseSink):
        name = "gated"

        def write(self, events: Sequence[Event], /) -> None:
            gate.wait(10)
            sink.write(events)

    client = connect(Gated(), delivery="thread", batch_delay_s=0)
    for tenant in ("a", "b"):
        with client.bind(org_id=tenant, colour=tenant):
            client.end_session(client.trace_query("q"))
    gate.set()
    assert client.flush() == 0
    assert [(event.org_id, event.tags["colour"]) for event in sink.events] == [(t, t) for t in "aabb"]


def test_bind_without_a_block_holds_for_the_rest_of_the_context(strict: SFRAGClient, sink: MemorySink) -> None:
    def run() -> None:
        strict.bind(actor_id="u1")
        strict.trace_query("q", session_id="s")

    contextvars.copy_context().run(run)
    strict.trace_query("q", session_id="s")
    assert [event.actor_id for event in sink.events] == ["u1", ""]


def test_bindings_left_out_of_order_are_gone_when_the_last_is(strict: SFRAGClient, sink: MemorySink) -> None:
    first, second = strict.bind(org_id="a"), strict.bind(team_id="b")
    first.__exit__(None, None, None)
    strict.trace_query("q", session_id="s")
    second.__exit__(None, None, None)
    strict.trace_query("q", session_id="s")
    assert [(event.org_id, event.team_id) for event in sink.events] == [("a", "b"), ("", "")]


def test_no_more_than_fifty_tags_are_bound(client: SFRAGClient, sink: MemorySink) -> None:
    with client.bind(**{f"tag{number}": "x" for number in range(60)}):
        client.trace_query("q")
    assert len(sink.events[0].tags) == 50
    assert client.get_status().replaced == {"tags_too_many": 1}


# -- OpenTelemetry --------------------------------------------------------------------------------------------------


def test_a_session_hangs_under_the_active_opentelemetry_span(strict: SFRAGClient, sink: MemorySink) -> None:
    trace = pytest.importorskip("opentelemetry.trace", reason="the otel extra is not installed")
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False)
    with trace.use_span(trace.NonRecordingSpan(context)):
        session_id = strict.trace_query("q")
        strict.trace_generation(session_id, "m")
    strict.end_session(session_id)
    strict.trace_query("q")
    *inside, outside = sink.events
    assert {event.trace_id for event in inside} == {f"{0xABC:032x}"}
    assert inside[-1].parent_span_id == f"{0xDEF:016x}"
    assert inside[0].parent_span_id == inside[-1].span_id
    assert outside.trace_id != inside[0].trace_id


@pytest.mark.parametrize(("flags", "said"), [(0, "00"), (1, "")])
def test_the_decision_of_opentelemetrys_sampling_is_followed(
    strict: SFRAGClient, sink: MemorySink, flags: int, said: str
) -> None:
    trace = pytest.importorskip("opentelemetry.trace", reason="the otel extra is not installed")
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=trace.TraceFlags(flags))
    with trace.use_span(trace.NonRecordingSpan(context)):
        session_id = strict.trace_query("q")
    strict.trace_generation(session_id, "m")
    strict.end_session(session_id)
    assert {event.trace_flags for event in sink.events} == {said}
    assert all(Event.decode(event.encode()) == event for event in sink.events)


def test_a_span_that_cannot_be_read_is_none(
    strict: SFRAGClient, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.trace", SimpleNamespace())
    strict.trace_query("q", session_id="s")
    assert sink.events[0].session_id == "s"


# -- when what is inside a call fails -------------------------------------------------------------------------------


def test_a_call_that_fails_inside_is_counted_and_its_scope_goes_on(
    client: SFRAGClient, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError

    runtime = client.cell.get()
    with monkeypatch.context() as broken:
        broken.setattr("spanforge.sdk.rag.ChunkCollector.add", fail)
        broken.setattr("spanforge.sdk.rag.coerce.query_text", fail)
        broken.setattr(runtime.dispatchers, "flush", fail)
        broken.setattr(runtime, "close", fail)
        with client.session("q") as session, session.retrieval() as retrieval:
            retrieval.record([{"chunk_id": "a"}])
        assert client.flush() == client.shutdown() == 1, "they do not know"
    assert [event.event_type for event in sink.events] == ["llm.rag.query", "llm.rag.session"]
    assert client.get_status().replaced == {
        f"{name}_failed:OSError": 1 for name in ("_digest", "_read", "trace_retrieval", "flush", "shutdown")
    }
