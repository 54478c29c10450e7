"""The fold: however the events of a session come, they make one summary, and it is the one the live table gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.sessions import sessions

from spanforge.namespaces.event import Event
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import SFClientConfig, SFRAGClient
from spanforge.sessions.aggregate import SessionAggregate
from spanforge.sinks.memory import MemorySink

NOT_OF_THE_FOLD = {"duration_ms", "started_at", "ended_at", "end_reason", "partial_view"}


def folded(summary: RAGSessionPayload) -> dict[str, Any]:
    """Return the fields the stages determine."""
    return {name: value for name, value in summary.to_dict().items() if name not in NOT_OF_THE_FOLD}


# -- any order, any split, any repetition ---------------------------------------------------------------------------


@given(sessions(), st.data())
def test_order_split_and_repetition_do_not_matter(events: list[Event], data: st.DataObject) -> None:
    whole = SessionAggregate.of(*events).summary("s")
    again = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events)))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(again)), max_size=4)))
    parts = [again[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(again)], strict=True)]
    merged = reduce(SessionAggregate.merge, (SessionAggregate.of(*part) for part in parts), SessionAggregate.empty())
    assert merged.summary("s") == whole
    assert merged == SessionAggregate.of(*events)
    assert hash(merged) == hash(SessionAggregate.of(*events))
    assert len(merged) == len(events)


@given(sessions(), sessions(), sessions())
def test_merging_is_a_commutative_monoid(one: list[Event], two: list[Event], three: list[Event]) -> None:
    # Ids of different sessions may clash here as they may in no file: then the event is the same one.
    a, b, c = SessionAggregate.of(*one), SessionAggregate.of(*one[1:], *two[:1]), SessionAggregate.of(*three[:1], *one)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert len(a.merge(b)) == len(b.merge(a))
    assert a.merge(SessionAggregate.empty()) == a == SessionAggregate.empty().merge(a)
    assert a.merge(a) == a


@given(sessions())
def test_events_read_again_fold_to_the_same_digits(events: list[Event]) -> None:
    read = [Event.decode(event.encode()) for event in events]
    assert SessionAggregate.of(*read).summary("s") == SessionAggregate.of(*events).summary("s")


# -- the live table -------------------------------------------------------------------------------------------------

STATUSES = st.sampled_from(["ok", "ok", "partial", "error", "timeout", "no such status"])
LATENCIES = st.floats(0, 1e9) | st.integers(0, 10_000) | st.floats() | st.none()
CHUNKS = st.lists(
    st.fixed_dictionaries(
        {"chunk_id": st.sampled_from(["a", "b", "c", 7, b"\xff"])},
        optional={"score": st.floats(), "source": st.just("x.md"), "text": st.text(max_size=3)},
    ),
    max_size=4,
)
STAGES = st.one_of(
    st.tuples(
        st.just("trace_query"),
        st.fixed_dictionaries({"query": st.text(max_size=5), "retriever_name": st.sampled_from(["", "one", "two"])}),
    ),
    st.tuples(
        st.just("trace_retrieval"),
        st.fixed_dictionaries({"chunks": CHUNKS, "latency_ms": LATENCIES, "status": STATUSES}),
    ),
    st.tuples(
        st.just("trace_rerank"), st.fixed_dictionaries({"chunks": CHUNKS, "latency_ms": LATENCIES, "status": STATUSES})
    ),
    st.tuples(
        st.just("trace_generation"),
        st.fixed_dictionaries(
            {
                "model": st.sampled_from(["m", ""]),
                "chunk_ids_used": st.lists(st.sampled_from(["a", "b", "z"]), max_size=4),
                "prompt_tokens": st.integers(-1, 10**6) | st.none(),
                "output_tokens": st.integers(0, 10**6),
                "latency_ms": LATENCIES,
                "status": STATUSES,
                "grounding_score": st.floats(0, 1) | st.floats() | st.none(),
            }
        ),
    ),
    st.tuples(
        st.just("trace_evaluation"), st.fixed_dictionaries({"faithfulness": st.floats(0, 1), "latency_ms": LATENCIES})
    ),
    st.tuples(st.just("escalate"), st.fixed_dictionaries({"rule": st.just("r"), "value": st.floats()})),
)
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.one_of(STAGES, st.tuples(st.sampled_from(["end", "fail", "join"]), st.just({})))),
    max_size=25,
)


@dataclass
class Live:
    """Three sessions in one client, and what its sink received of them."""

    sink: MemorySink = field(default_factory=MemorySink)

    def __post_init__(self) -> None:
        self.client = SFRAGClient(SFClientConfig())
        self.client.configure(sinks=self.sink, delivery="sync")
        self.open: set[str] = set()
        self.last: dict[str, RAGSessionPayload] = {}

    def step(self, name: str, call: str, values: dict[str, Any]) -> None:
        """Make one call; a stage of a session that is not open opens it (again) first."""
        if call == "join" or (name not in self.open and call not in {"trace_query", "end", "fail"}):
            self.client.join_session(name)
            self.open.add(name)
        if call == "end":
            self.end(name)
        elif call == "fail":
            self.fail(name)
        elif call == "trace_query":
            self.client.trace_query(**values, session_id=name)
            self.open.add(name)
        elif call != "join":
            getattr(self.client, call)(name, **values)

    def end(self, name: str) -> None:
        if name in self.open:
            self.last[name] = self.client.end_session(name)
            assert self.client.end_session(name) == self.last[name]
            self.open.discard(name)

    def fail(self, name: str) -> None:
        try:
            with self.client.session("q", session_id=name) as scope:
                raise LookupError  # noqa: TRY301  the exception that leaves a scope is what is tried
        except LookupError:
            assert scope.summary is not None
            self.last[name] = scope.summary
            self.open.discard(name)


@given(STEPS)
def test_the_live_table_is_the_fold_of_what_the_sink_received(steps: list[tuple[int, Any]]) -> None:
    live = Live()
    for number, (call, values) in steps:
        live.step(f"s{number}", call, values)
        for name in live.open:
            snapshot = live.client.get_session(name)
            assert snapshot is not None
            assert folded(snapshot) == folded(received(live.sink, name))
    for name in sorted(live.open):
        live.end(name)
    for name, summary in live.last.items():
        assert folded(summary) == folded(received(live.sink, name))
        assert live.sink.of_type("llm.rag.session")
    assert live.client.get_status().orphans == 0


def received(sink: MemorySink, session_id: str) -> RAGSessionPayload:
    """Fold what a sink received of a session, as any reader of its bytes would."""
    events = [Event.decode(event.encode()) for event in sink.events if event.session_id == session_id]
    return SessionAggregate.of(*events).summary(session_id)


@given(st.lists(STAGES, max_size=10), st.data())
def test_two_processes_of_one_session_fold_to_what_one_would_have_seen(stages: list[Any], data: st.DataObject) -> None:
    alone, here, there = Live(), Live(), Live()
    for side in (alone, here):
        side.client.trace_query("q", session_id="s", retriever_name="first")
        side.open.add("s")
    there.step("s", "join", {})
    for call, values in stages:
        # The first named retriever is decided by event id, which clocks of two processes do not order: name one.
        given_values = {**values, "retriever_name": "first"} if call == "trace_query" else values
        alone.step("s", call, given_values)
        data.draw(st.sampled_from([here, there])).step("s", call, given_values)
    for side in (alone, here, there):
        side.end("s")
    assert there.last["s"].partial_view
    assert not here.last["s"].partial_view
    both = SessionAggregate.of(*here.sink.events).merge(SessionAggregate.of(*there.sink.events))
    assert folded(both.summary("s")) == folded(alone.last["s"])


def test_late_stages_are_in_the_fold_and_not_in_a_summary_that_was_sent(client: SFRAGClient, sink: MemorySink) -> None:
    session_id = client.trace_query("q")
    summary = client.end_session(session_id)
    client.trace_evaluation(session_id, faithfulness=0.5)
    assert client.get_status().orphans == 1
    assert summary.evaluation_count == 0
    assert received(sink, session_id).evaluation_count == 1
