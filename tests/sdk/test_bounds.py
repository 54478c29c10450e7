"""What is bounded: nothing that an application leaves open, or hands over, costs more than its bound."""

from __future__ import annotations

import contextvars
import gc
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanforge.sdk import SFFeedbackClient, SFRAGClient, sf_feedback, sf_rag
from spanforge.sdk.propagation import extract
from spanforge.sinks.memory import MemorySink

Connect = Callable[..., SFRAGClient]
REPEATS = 2_000


def growth(step: Callable[[int], object]) -> int:
    """Return the bytes that so many steps leave behind, after as many to fill what is bounded."""
    for number in range(REPEATS):
        step(number)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(REPEATS):
            step(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


# -- what nobody leaves -----------------------------------------------------------------------------------------------


def bound_for_good(client: SFRAGClient, number: int) -> None:
    client.bind(org_id=f"org-{number}", request=str(number))


def entered_for_good(client: SFRAGClient, number: int) -> None:
    client.session("q", session_id=f"s{number}").__enter__()


def attached_for_good(client: SFRAGClient, number: int) -> None:
    client.attach(f"s{number}").__enter__()


def make_entering_one_again() -> Callable[[SFRAGClient, int], None]:
    scopes: list[Any] = []

    def step(client: SFRAGClient, _number: int) -> None:
        scopes[:] = scopes or [client.attach("s")]
        scopes[0].__enter__()

    return step


def make_hand_over() -> Callable[[SFRAGClient, int], None]:
    """Each block is left after the next was entered, as streams in a pipeline are."""
    last: list[Any] = []

    def step(client: SFRAGClient, number: int) -> None:
        scope = client.attach(f"s{number}")
        scope.__enter__()
        for before in last:
            before.__exit__(None, None, None)
        last[:] = [scope]

    return step


@pytest.mark.parametrize(
    "step",
    [bound_for_good, entered_for_good, attached_for_good, make_entering_one_again(), make_hand_over()],
    ids=["bind", "session", "attach", "one scope again", "hand over"],
)
def test_blocks_that_are_never_left_leave_nothing_behind(connect: Connect, step: Callable[[SFRAGClient, int], None]):
    client = connect(max_sessions=10, retained_sessions=10)
    assert contextvars.copy_context().run(growth, lambda number: step(client, number)) < 20 * REPEATS


def test_what_a_block_covers_shows_again_however_its_own_cover_came_to_be(strict: SFRAGClient, sink: MemorySink):
    def ask() -> None:
        strict.trace_query("q", session_id="s")

    def run() -> None:
        with strict.bind(org_id="outer"):
            strict.bind(team_id="for good")
            early, late = strict.bind(org_id="early"), strict.bind(org_id="late")
            with early, late:
                ask()
            ask()
        ask()

    contextvars.copy_context().run(run)
    assert [(event.org_id, event.team_id) for event in sink.events] == [
        ("late", "for good"),
        ("outer", "for good"),
        ("outer", "for good"),
    ]


# -- what is handed over ----------------------------------------------------------------------------------------------

MANY = 100_000
CHUNK = {"chunk_id": "a", "score": 0.5, "source": "s"}


class Lazy(Sequence[Any]):
    """Makes each element when it is asked for."""

    def __init__(self, element: object) -> None:
        self._element = element

    def __len__(self) -> int:
        return MANY

    def __getitem__(self, index: Any) -> Any:
        return self._element


class LazyRow(Mapping[str, Any]):
    """A row of a database, with more columns than anybody wants."""

    def __len__(self) -> int:
        return MANY

    def __getitem__(self, name: str) -> Any:
        return CHUNK.get(name, 1)

    def __iter__(self) -> Iterator[str]:
        yield from CHUNK
        yield from (f"column{number}" for number in range(MANY))


def cost(call: Callable[[], object]) -> tuple[int, int]:
    """Return the lines of Python that a call runs, and the bytes it holds at most: what time would say, exactly."""
    lines = 0

    def count(_frame: object, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    tracemalloc.start()
    before = sys.gettrace()
    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return lines, peak


NUMBERS = list(range(MANY))
NAMES = [f"n{number}" for number in NUMBERS]
VALUES = {
    "dict": dict.fromkeys(NAMES, 1),
    "dict of dicts": {"a": dict.fromkeys(NAMES, 1)},
    "list": {"a": NUMBERS},
    "tuple": {"a": tuple(NUMBERS)},
    "set": {"a": set(NUMBERS)},
    "frozenset": {"a": frozenset(NUMBERS)},
    "deque": {"a": deque(NUMBERS)},
    "array": {"a": np.zeros(MANY)},
    "lists of lists": {"a": [NUMBERS] * MANY},
}
IDS = {
    "list": NAMES,
    "set": set(NAMES),
    "dict": dict.fromkeys(NAMES),
    "values": dict.fromkeys(NAMES).values(),
    "array": np.arange(MANY),
    "lazy": Lazy("a"),
    "nothing that is an id": [None] * MANY,
}
HITS = {
    "list": [CHUNK] * MANY,
    "deque": deque([CHUNK] * MANY),
    "lazy": Lazy(CHUNK),
    "values": dict.fromkeys(NAMES, CHUNK).values(),
    "columns": {"ids": NAMES, "distances": [0.5] * MANY, "documents": ["text"] * MANY},
    "columns for each query": {"ids": [NAMES], "distances": [[0.5] * MANY]},
    "many queries": {"ids": [["a"]] * MANY},
    "columns for many queries": {"ids": [["a"]] * MANY, "distances": [[0.5]] * MANY, "documents": [["text"]] * MANY},
    "columns of text": {"ids": NAMES, "distances": NAMES},
    "range": range(10**9),
    "text": NAMES,
    "inside": {"matches": [CHUNK] * MANY},
    "arrays": {"ids": np.arange(MANY)},
}
ONE_HIT = {
    "row": LazyRow(),
    "metadata": {**CHUNK, "metadata": dict.fromkeys(NAMES, 1)},
    "metadata as a mapping": {**CHUNK, "metadata": MappingProxyType(dict.fromkeys(NAMES, 1))},
    "pair that is none": NUMBERS,
}
ISSUES = {"issues": ["no code"] * MANY}
HEADERS = dict.fromkeys(NAMES, "x")
GENERATED = (CHUNK for _ in iter(int, 1))


@pytest.fixture
def bounded() -> SFRAGClient:
    sf_rag.configure(sinks="memory", delivery="sync", max_chunk_ids=100)
    sf_rag.trace_query("warm", session_id="s")
    return sf_rag


def calls(client: SFRAGClient, feedback: SFFeedbackClient) -> dict[str, Callable[[], object]]:
    return {
        **{f"filters: {kind}": lambda v=v: client.trace_query("q", filters=v) for kind, v in VALUES.items()},
        **{f"feedback: {kind}": lambda v=v: feedback.submit("s", metadata=v) for kind, v in VALUES.items()},
        **{f"used: {kind}": lambda v=v: client.trace_generation("s", "m", chunk_ids_used=v) for kind, v in IDS.items()},
        **{f"hits: {kind}": lambda v=v: client.trace_retrieval("s", v) for kind, v in HITS.items()},
        **{f"rerank: {kind}": lambda v=v: client.trace_rerank("s", "m", chunks=v) for kind, v in HITS.items()},
        **{f"hit: {kind}": lambda v=v: client.trace_retrieval("s", [v]) for kind, v in ONE_HIT.items()},
        "hits: generator": lambda: client.trace_retrieval("s", GENERATED),
        "used: generator": lambda: client.trace_generation("s", "m", chunk_ids_used=GENERATED),  # type: ignore[arg-type]
        "issues": lambda: feedback.submit("s", metadata=ISSUES),
        "headers": lambda: extract(HEADERS),
    }


CALLS = calls(sf_rag, sf_feedback)


@pytest.mark.parametrize("kind", CALLS)
def test_what_is_handed_over_costs_no_more_than_its_bound(bounded: SFRAGClient, kind: str):
    lines, peak = cost(CALLS[kind])
    assert lines < 60_000
    assert peak < 2_000_000


@pytest.mark.parametrize("kind", HITS)
def test_what_hits_cost_grows_as_their_bound_does_and_no_faster(bounded: SFRAGClient, kind: str):
    costs: list[int] = []
    for bound in (20, 200):
        sf_rag.configure(sinks="memory", delivery="sync", max_chunk_ids=bound)
        costs.append(cost(CALLS[f"hits: {kind}"])[0])
    assert costs[1] < 12 * costs[0]


class Hit:
    """Knows whether it was looked at."""

    def __init__(self, touched: list[int]) -> None:
        self.__dict__["touched"] = touched

    def __getattribute__(self, name: str) -> Any:
        if name != "__dict__":
            object.__getattribute__(self, "__dict__")["touched"][0] += 1
        return object.__getattribute__(self, name)


class Frame(Hit):
    """A table, or a column of one: where its rows have names, looking for an attribute indexes them all."""

    def __array__(self) -> Any:
        raise AssertionError


FIELDS = [
    "ids",
    "id",
    "distances",
    "scores",
    "documents",
    "metadatas",
    "matches",
    "results",
    "nodes",
    "node",
    "payload",
]
SHAPES = st.recursive(
    st.sampled_from(["hits", "deque of hits", "frame"]),
    lambda inner: (
        st.tuples(
            st.sampled_from(["many", "dict", "object"]), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
        )
        | st.tuples(st.just("list"), inner)
    ),
    max_leaves=6,
)


def built(shape: Any, touched: list[int]) -> Any:
    """Return what a store might hand over, far larger than any bound, and count how often it is asked."""
    if isinstance(shape, str):
        many = [Hit(touched)] * MANY
        return {"hits": many, "deque of hits": deque(many), "frame": Frame(touched)}[shape]
    kind, inner = shape
    if kind == "list":
        return [built(inner, touched)] * MANY
    fields = {name: built(value, touched) for name, value in inner.items()}
    return {"many": lambda: [fields] * MANY, "dict": lambda: fields, "object": lambda: SimpleNamespace(**fields)}[
        kind
    ]()


@given(SHAPES)
@settings(max_examples=30)
def test_of_whatever_shape_no_more_is_looked_at_than_the_bound_allows(bounded: SFRAGClient, shape: Any):
    bound, touched = 10, [0]
    sf_rag.configure(sinks="memory", delivery="sync", max_chunk_ids=bound)
    sf_rag.trace_retrieval("s", built(shape, touched))
    # Some fifty fields each hit; the first of what answers each query of a batch, of fifty at most, is asked once more.
    assert touched[0] <= 100 * (bound + 50)


def test_a_frame_is_no_hit_and_is_not_looked_at(bounded: SFRAGClient):
    touched = [0]
    before = sf_rag.get_status().replaced
    for hits in (Frame(touched), [Frame(touched)], [{"id": "a", "node": Frame(touched), "metadata": Frame(touched)}]):
        sf_rag.trace_retrieval("s", hits)
    assert touched == [0]
    assert sf_rag.get_status().replaced["chunks_unreadable"] == before.get("chunks_unreadable", 0) + 2


def test_how_many_hits_there_were_is_known_without_reading_them(bounded: SFRAGClient):
    for name, hits in HITS.items():
        if "many queries" not in name:
            bounded.trace_retrieval("s", hits)
    found = bounded.cell.get().dispatcher.sinks[0].of_type("llm.rag.retrieved")  # type: ignore[attr-defined]
    kinds = [kind for kind in HITS if "many queries" not in kind]
    assert {kind: len(payload["chunks"]) for kind, payload in zip(kinds, found, strict=True)} == {
        kind: 0 if kind == "range" else 100 for kind in kinds
    }
    totals = dict(zip(kinds, (payload["total_found"] for payload in found), strict=True))
    ways = ("list", "deque", "lazy", "values", "columns", "columns for each query", "columns of text", "text")
    assert {totals[kind] for kind in ways} == {MANY}
    assert totals["range"] == 10**9


def test_one_call_answers_no_more_queries_than_there_are_retrievals_for(bounded: SFRAGClient):
    bounded.trace_retrieval("s", HITS["many queries"])
    found = bounded.cell.get().dispatcher.sinks[0].of_type("llm.rag.retrieved")  # type: ignore[attr-defined]
    assert [len(payload["chunks"]) for payload in found] == [1] * 50
    assert "chunks_too_many" in bounded.get_status().replaced


def test_groups_beyond_the_bound_are_counted_and_not_kept() -> None:
    memory = MemorySink()
    sf_rag.configure(sinks=memory, delivery="sync", max_chunk_ids=10)
    group = {"hits": [{"id": f"p{number}", "score": 0.5} for number in range(4)]}
    sf_rag.trace_retrieval("s", {"groups": [group] * 5})
    (found,) = memory.of_type("llm.rag.retrieved")
    assert (len(found["chunks"]), found["total_found"]) == (10, 20)


def test_of_arrays_of_many_queries_fifty_are_read() -> None:
    memory = MemorySink()
    sf_rag.configure(sinks=memory, delivery="sync", max_chunk_ids=1_000)
    before = dict(sf_rag.get_status().replaced)
    places = np.tile(np.array([3, 5, -1]), (70, 1))
    sf_rag.trace_retrieval("s", (np.tile(np.array([0.1, 0.2, 9.0]), (70, 1)), places))
    found = memory.of_type("llm.rag.retrieved")
    assert [(len(one["chunks"]), one["total_found"]) for one in found] == [(2, 2)] * 50
    assert sf_rag.get_status().replaced["chunks_too_many"] == before.get("chunks_too_many", 0) + 1
