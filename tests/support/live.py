"""Calls upon a client, drawn: sessions begun, joined, gone on with and ended, and what the sink received of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from spanforge.namespaces.retrieval import SUMMARY_ONLY, RAGSessionPayload
from spanforge.sdk import SFClientConfig, SFRAGClient
from spanforge.sinks.memory import MemorySink

NOT_OF_THE_FOLD = {*SUMMARY_ONLY, "partial_view"}


def folded(summary: RAGSessionPayload) -> dict[str, Any]:
    """Return the fields the stages determine."""
    return {name: value for name, value in summary.to_dict().items() if name not in NOT_OF_THE_FOLD}


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
    """Three sessions in one client, and what its sink received of them.

    Attributes:
        rate: Share of the sessions that are sampled.
        joins: A stage of a session that is not open joins it first; else it is late, or an orphan.
        last: The summary that the last end of a session returned, by its id.
        strays: Sessions that were sent stages while they were not open, which their summaries know nothing of.
    """

    rate: float = 1.0
    joins: bool = True
    sink: MemorySink = field(default_factory=MemorySink)

    def __post_init__(self) -> None:
        self.client = SFRAGClient(SFClientConfig())
        self.client.configure(sinks=self.sink, delivery="sync", sample_rate=self.rate)
        self.open: set[str] = set()
        self.last: dict[str, RAGSessionPayload] = {}
        self.strays: set[str] = set()

    def step(self, name: str, call: str, values: dict[str, Any]) -> None:
        """Make one call."""
        stray = name not in self.open and call not in {"join", "trace_query", "end", "fail"}
        if call == "join" or (stray and self.joins):
            self.client.join_session(name)
            self.open.add(name)
        elif stray:
            before = len(self.sink.events)
            getattr(self.client, call)(name, **values)
            self.strays |= {event.session_id for event in self.sink.events[before:]}
            return
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
            summary = self.last[self.client.end_session(name).session_id] = self.client.end_session(name)
            assert self.client.end_session(name) == summary
            self.open.discard(name)

    def fail(self, name: str) -> None:
        try:
            with self.client.session("q", session_id=name) as scope:
                raise LookupError  # noqa: TRY301  the exception that leaves a scope is what is tried
        except LookupError:
            assert scope.summary is not None
            self.last[scope.summary.session_id] = scope.summary
            self.open.discard(name)
