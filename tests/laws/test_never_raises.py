"""Nothing an application passes makes a trace call raise, and one bad argument never costs the event."""

from __future__ import annotations

import asyncio
import enum
import inspect
import json
import math
import pathlib
import uuid
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.door import SESSION, Place, places

from spanforge import _clock
from spanforge.exceptions import UnknownSessionError
from spanforge.namespaces.event import Event
from spanforge.sdk import SFClientConfig, SFFeedbackClient, SFRAGClient
from spanforge.sinks.memory import MemorySink


def _hostile(*, base: type = object) -> type:
    """Return a class all of whose methods raise, `__class__` and attribute look-up included."""

    def fail(*_args: object, **_kwargs: object) -> Any:
        raise RuntimeError("hostile")

    names = (
        "__repr__ __str__ __eq__ __hash__ __iter__ __len__ __bool__ __getitem__ __contains__ __float__ __int__ "
        "__index__ __getattribute__ __format__ __lt__ __le__ __gt__ __ge__ __next__ __bytes__ __fspath__ __call__ "
        "__add__ __mod__"
    )
    return type("Hostile", (base,), dict.fromkeys(names.split(), fail))


class Colour(enum.Enum):
    RED = "red"
    NUMBER = 7
    NESTED = ("a", {"b": 1})


def _cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append({"again": ring})
    return ring


def _deep() -> Any:
    value: Any = "bottom"
    for _ in range(1_000):
        value = [{"deeper": value}]
    return value


JUNK: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "object": object,
    "hostile": _hostile(),
    "hostile class": _hostile,
    "hostile str": lambda: _hostile(base=str)("text"),
    "hostile int": lambda: _hostile(base=int)(3),
    "hostile float": lambda: _hostile(base=float)(0.5),
    "hostile list": lambda: _hostile(base=list)([1]),
    "hostile dict": lambda: _hostile(base=dict)({"a": 1}),
    "hostile exception": lambda: _hostile(base=Exception)("e"),
    "list of hostile": lambda: [_hostile()(), {"chunk_id": _hostile()(), "score": _hostile()()}, (_hostile()(), 0.5)],
    "dict of hostile": lambda: {"a": _hostile()(), "metadata": _hostile(base=dict)({"b": _hostile()()})},
    "cycle": _cycle,
    "cyclic dict": lambda: _cycle()[0],
    "deep": _deep,
    "10 MB": lambda: "x" * 10_000_000,
    "10 MB of blanks": lambda: " " * 10_000_000,
    "surrogates": lambda: "\ud800 lone \udfff",
    "control characters": lambda: "\x00\n\r\x1b[31m\u2028\u2029\x85",
    "empty": lambda: "",
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "minus inf": lambda: -math.inf,
    "minus one": lambda: -1,
    "huge int": lambda: 10**6_000,
    "huge float": lambda: 1e308,
    "huge digits": lambda: "9" * 5_000,
    "bool": lambda: True,
    "complex": lambda: 1j,
    "Decimal": lambda: Decimal("0.5"),
    "signalling NaN": lambda: Decimal("sNaN"),
    "Fraction": lambda: Fraction(1, 3),
    "numpy float": lambda: np.float32(0.5),
    "numpy nan": lambda: np.float64("nan"),
    "numpy int": lambda: np.int64(3),
    "numpy bool": lambda: np.True_,
    "numpy str": lambda: np.str_("text"),
    "numpy time": lambda: np.datetime64("2026-01-01"),
    "numpy array": lambda: np.array([0.1, 0.2]),
    "numpy strings": lambda: np.array(["a", "b"]),
    "numpy objects": lambda: np.array([object(), None], dtype=object),
    "numpy zero-dimensional": lambda: np.array(0.5),
    "numpy matrix": lambda: np.zeros((2, 2)),
    "UUID": lambda: uuid.UUID(int=1),
    "bytes": lambda: b"\xff\x00",
    "bytearray": lambda: bytearray(b"\xff"),
    "memoryview": lambda: memoryview(b"x"),
    "Path": lambda: pathlib.Path("a.md"),
    "datetime": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    "timedelta": lambda: timedelta(seconds=1),
    "enum": lambda: Colour.RED,
    "enum of int": lambda: Colour.NUMBER,
    "enum of tuple": lambda: Colour.NESTED,
    "strange keys": lambda: {
        1: "a",
        None: "b",
        (1, 2): "c",
        uuid.UUID(int=2): "d",
        1.5: "e",
        b"f": "f",
        Colour.RED: "g",
    },
    "sets": lambda: {"a": {1, "b", None}, "b": frozenset({2})},
    "mappings": lambda: [MappingProxyType({"a": 1}), UserDict({"a": 1}), OrderedDict(a=1), defaultdict(list, a=[1])],
    "deque": lambda: deque(["a", "b"]),
    "generator": lambda: (number for number in range(3)),
    "iterator": lambda: iter([{"chunk_id": "a"}]),
    "range": lambda: range(3),
    "map": lambda: map(str, [1]),
    "function": lambda: len,
    "class": lambda: ValueError,
    "module": lambda: math,
    "exception": lambda: ValueError("text"),
    "exception group": lambda: ExceptionGroup("text", [ValueError("text")]),
    "namespace": lambda: SimpleNamespace(id=object(), metadata=[], score="high", page_content=3, node=None),
    "columns": lambda: {"ids": [["a", "b"], None], "distances": [np.array([0.1])], "documents": [None]},
    "ragged columns": lambda: {"ids": ["a", "b"], "distances": 5},
    "10,000 chunks": lambda: [{"id": number, "score": number, "text": "t"} for number in range(10_000)],
    "nested nothing": lambda: [None, [], {}, (), "", [None]],
}
PLACES = [place for place in places() if place.method not in {"flush", "aflush", "shutdown"}]


@pytest.fixture(scope="module")
def rag() -> SFRAGClient:
    client = SFRAGClient(SFClientConfig())
    client.configure(sinks=MemorySink(), delivery="sync", max_chunk_ids=100)
    return client


@pytest.fixture(scope="module")
def feedback(rag: SFRAGClient) -> SFFeedbackClient:
    client = SFFeedbackClient()
    client.cell = rag.cell
    return client


def _memory(rag: SFRAGClient) -> MemorySink:
    (sink,) = rag.cell.get().dispatcher.sinks
    assert isinstance(sink, MemorySink)
    return sink


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_no_argument_makes_a_call_raise_or_lose_its_event(
    place: Place, rag: SFRAGClient, feedback: SFFeedbackClient
) -> None:
    sink = _memory(rag)
    for name, make in JUNK.items():
        rag.trace_query("q", session_id=SESSION)
        sink.clear()
        before = _accepted(rag)
        value = make()
        try:
            place.call(rag, feedback, value)
        except UnknownSessionError:
            assert place.method == "end_session"
        # What is wanted once, and has been recorded, is not recorded again.
        if place.emits and place.argument != "no_such_keyword" and (place.argument, name) != ("once", "bool"):
            assert _accepted(rag) == before + 1, name
            assert len(sink.events) == 1, name
        for event in sink.events:
            assert Event.decode(event.encode()) == event, name
            json.loads(event.encode(), parse_constant=pytest.fail)
    ledger = next(iter(rag.get_status().sinks.values()))
    assert ledger.failed == 0
    assert ledger.balanced


MORE_THAN_ANY_HAS = 9
CALLS = {f"{place.owner}.{place.method}": place for place in places()}


@pytest.mark.parametrize("count", [0, 1, 2, MORE_THAN_ANY_HAS])
@pytest.mark.parametrize("name", CALLS)
async def test_no_number_of_arguments_makes_a_call_raise(
    name: str, count: int, connect: Callable[..., SFRAGClient], sink: MemorySink
) -> None:
    client, feedback = connect(sink), SFFeedbackClient(SFClientConfig())
    feedback.cell = client.cell
    client.trace_query("q", session_id=SESSION)
    with suppress(UnknownSessionError):  # which `end_session()` outside of any scope is meant to raise
        found = CALLS[name].call_with(client, feedback, *[SESSION] * count)
        if inspect.isawaitable(found):
            await found
    if count == MORE_THAN_ANY_HAS and CALLS[name].method != "add":
        assert client.get_status().replaced[f"{CALLS[name].method}_unknown_argument"] == 1


def _accepted(rag: SFRAGClient) -> int:
    return next(iter(rag.get_status().sinks.values())).accepted


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.text(st.characters(exclude_categories=[]))
    | st.binary()
    | st.uuids()
    | st.datetimes()
    | st.timedeltas()
    | st.complex_numbers()
)
KEYS = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.uuids() | st.tuples(st.integers())
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.sampled_from(["chunk_id", "id", "score", "metadata", "text", "source", "ids", "matches", "node", "rank"])
            | KEYS,
            inner,
            max_size=4,
        )
        | st.builds(
            lambda values: SimpleNamespace(**values),
            st.dictionaries(st.sampled_from(["id", "metadata", "score"]), inner),
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(PLACES), ANYTHING)
def test_nor_does_anything_hypothesis_thinks_of(
    rag: SFRAGClient, feedback: SFFeedbackClient, place: Place, value: Any
) -> None:
    sink = _memory(rag)
    rag.trace_query("q", session_id=SESSION)
    sink.clear()
    try:
        place.call(rag, feedback, value)
    except UnknownSessionError:
        assert place.method == "end_session"
    if place.emits and place.argument != "no_such_keyword":
        assert len(sink.events) == 1
    for event in sink.events:
        assert Event.decode(event.encode()) == event


@pytest.mark.parametrize("value", [None, "x", math.nan, math.inf, [1]], ids=repr)
async def test_a_timeout_that_is_no_number_is_the_default_and_counted(value: Any, client: SFRAGClient) -> None:
    client.end_session(client.trace_query("q"))
    assert client.flush(value) == 0
    assert await client.aflush(value) == 0
    assert client.shutdown(value) == 0
    assert client.get_status().replaced == {"timeout": 3}


@pytest.mark.parametrize("make", JUNK.values(), ids=JUNK)
def test_waiting_takes_any_timeout(make: Callable[[], Any], client: SFRAGClient) -> None:
    client.end_session(client.trace_query("q"))
    assert client.flush(make()) == 0
    assert asyncio.run(client.aflush(make())) == 0
    assert client.shutdown(make()) == 0


def test_a_clock_that_steps_back_keeps_order_and_durations(
    client: SFRAGClient, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = iter(range(2_000_000_000_000_000_000, 0, -50_000_000_000_000))
    monkeypatch.setattr(_clock, "wall_ns", lambda: next(wall))
    session_id = client.trace_query("q")
    for _ in range(5):
        with client.generation("m", session_id):
            pass
    summary = client.end_session(session_id)
    ids = [event.event_id for event in sink.events]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids) == 7
    assert summary.duration_ms is not None
    assert summary.duration_ms >= 0
    assert summary.ended_at is not None
    assert summary.started_at is not None
    assert summary.ended_at >= summary.started_at


def test_clocks_that_stand_still_keep_order_and_give_durations_of_nothing(
    client: SFRAGClient, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_clock, "wall_ns", lambda: 2_000_000_000_000_000_000)
    monkeypatch.setattr(_clock, "monotonic_ns", lambda: 7)
    for _ in range(3):
        with client.session("q") as session, session.generation("m"):
            pass
    ids = [event.event_id for event in sink.events]
    assert ids == sorted(set(ids))
    assert {payload["latency_ms"] for payload in sink.of_type("llm.rag.generated")} == {0.0}
    assert {payload["duration_ms"] for payload in sink.of_type("llm.rag.session")} == {0.0}


# The names that the calls themselves give to what they are called on, and one that nobody has.
@pytest.mark.parametrize("keyword", ["no_such_keyword", "client", "error", "args", "method"])
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("trace_query", "query"),
        ("trace_retrieval", "retrieved"),
        ("trace_rerank", "reranked"),
        ("trace_generation", "generated"),
        ("trace_evaluation", "evaluated"),
        ("escalate", "escalated"),
    ],
)
def test_a_wrong_keyword_is_counted_by_the_call_that_had_it(
    call: str, kind: str, keyword: str, client: SFRAGClient, sink: MemorySink
) -> None:
    getattr(client, call)(**{"query": "q"} if call == "trace_query" else {}, session_id="s", **{keyword: 1})
    assert len(sink.of_type(f"llm.rag.{kind}")) == 1
    assert client.get_status().replaced[f"{call}_unknown_argument"] == 1


@pytest.mark.parametrize("keyword", ["no_such_keyword", "client", "query_hash"])
def test_a_scope_opens_its_session_whatever_the_keyword(keyword: str, client: SFRAGClient, sink: MemorySink) -> None:
    with client.session("q", namespace="n", **{keyword: "x"}) as session:
        assert client.current_session_id() == session.session_id
    (query,) = sink.of_type("llm.rag.query")
    assert query["namespace"] == "n"
    assert client.get_status().replaced == {"session_unknown_argument": 1}


def test_a_stage_scope_is_emitted_whatever_the_keyword(client: SFRAGClient, sink: MemorySink) -> None:
    with client.session("q") as session, session.generation("m", client="x") as generation:
        generation.record(answer="x", prompt_tokens=3)
    assert sink.of_type("llm.rag.generated")[0]["prompt_tokens"] == 3
    assert client.get_status().replaced == {"trace_generation_unknown_argument": 1}


def test_a_stage_may_be_given_its_session_late(client: SFRAGClient, sink: MemorySink) -> None:
    with client.session("q", session_id="here"), client.generation("m") as generation:
        generation.record(session_id="there")
    assert sink.of_type("llm.rag.generated")[0]["session_id"] == "there"
    assert client.get_status().replaced == {}
