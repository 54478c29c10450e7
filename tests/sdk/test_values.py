"""Values of metadata and filters, each by its documented rule; and single values that stand for several."""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from pydantic import BaseModel

from spanforge.sdk import SFRAGClient
from spanforge.sinks.memory import MemorySink


class Level(enum.IntEnum):
    HIGH = 3


class OwnZone(tzinfo):
    """A zone whose methods are an application's own."""


@dataclass
class Record:
    text: str


class Model(BaseModel):
    text: str


def kept(client: SFRAGClient, value: Any) -> Any:
    client.trace_query("q", top_k=3, filters={"before": 1, "key": value, "after": 2})
    (sink,) = client.cell.get().dispatcher.sinks
    assert isinstance(sink, MemorySink)
    payload = sink.events[-1].payload
    json.loads(sink.events[-1].encode(), parse_constant=pytest.fail)
    # A value costs itself alone.
    assert (payload["top_k"], payload["filters"].pop("before")) == (3, 1)
    assert list(payload["filters"]) == ["key"] or payload["filters"].pop("after") == 2
    return payload["filters"]["key"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        (2**70, float(2**70)),
        (Decimal("1.5"), 1.5),
        (Level.HIGH, 3),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.True_, True),
        (np.array([1]), "type:ndarray"),
        (UUID(int=1), str(UUID(int=1))),
        (timedelta(seconds=1.5), 1.5),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (datetime(2026, 1, 2, 3), "2026-01-02T03:00:00"),  # noqa: DTZ001  as many an application has them
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (datetime(2026, 1, 2, tzinfo=ZoneInfo("UTC")), "2026-01-02T00:00:00+00:00"),
        ([1, (2, {3})], [1, [2, [3]]]),
        ([None, [None]], [None, [None]]),
        ({3, 1, 2}, [1, 2, 3]),
        (deque([1]), [1]),
        ({"and": {"$gte": 1}}, {"and": {"$gte": 1}}),
        ({None: 1, 2: 2, (1,): 3, 2**70: 4}, {"None": 1, "2": 2, "key:tuple": 3, "int": 4}),
    ],
)
def test_a_value_is_kept_as_json_can_say_it(value: Any, expected: Any, client: SFRAGClient) -> None:
    assert kept(client, value) == expected


def test_below_the_top_keys_are_kept_where_they_are_words_of_a_filter_or_allowed(
    connect: Callable[..., SFRAGClient], sink: MemorySink
) -> None:
    client = connect(sink, metadata_allow=["author"])
    client.trace_query(
        "q",
        filters={
            "body": {"salary": 3, "$eq": 1, "author": {"range": {"gte": 4, "diagnosis": 5}}},
            "a whole question": [{"must": [{"term": {"key": 6, "word of a document": 7}}]}],
        },
    )
    filters = sink.events[0].payload["filters"]
    top, digested = filters
    assert (top, digested[:11]) == ("body", "key:sha256:")
    assert [key.partition(":")[0] for key in filters["body"]] == ["key", "$eq", "author"]
    assert [key.partition(":")[0] for key in filters["body"]["author"]["range"]] == ["gte", "key"]
    [inner] = filters[digested][0]["must"]
    assert [key[:11] for key in inner["term"]] == ["key", "key:sha256:"]
    text = json.dumps(filters)
    assert not [word for word in ("salary", "diagnosis", "document", "question") if word in text]
    assert [digit for digit in "3145678" if digit in re.sub("sha256:[0-9a-f]+", "", text)] == list("314567")


@pytest.mark.parametrize("name", ["text of a document", "X" * 65])
def test_an_object_whose_class_is_made_of_text_has_no_name(name: str, client: SFRAGClient) -> None:
    made_of_text = type(name, (), {})
    assert kept(client, made_of_text()) == "type:class"
    assert kept(client, {"and": {made_of_text(): 1}})["and"] == {"key:class": 1}
    client.trace_generation("s", "m", error_message=type(name, (Exception,), {})())
    client.trace_generation("s", "m", error_message=type(name, (Exception,), {}))  # type: ignore[arg-type]
    (sink,) = client.cell.get().dispatcher.sinks
    assert isinstance(sink, MemorySink)
    assert [payload["error_message"] for payload in sink.of_type("llm.rag.generated")] == ["class"] * 2


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ("text", "str:sha256:"),
        (b"text", "bytes:sha256:"),
        (bytearray(b"text"), "bytes:sha256:"),
        (PurePosixPath("a/b"), "path:sha256:"),
    ],
)
def test_text_is_kept_as_its_type_and_digest(value: Any, start: str, client: SFRAGClient) -> None:
    assert kept(client, value).startswith(start)


@pytest.mark.parametrize(
    ("value", "expected", "reason"),
    [
        (object(), "type:object", "unknown_type"),
        (Record("text"), "type:Record", "unknown_type"),
        (Model(text="text"), "type:Model", "unknown_type"),
        ({"and": [{"lt": float("nan")}, {"gt": float("-inf")}]}, {"and": [{"lt": None}, {"gt": None}]}, "not_finite"),
        (datetime(2026, 1, 2, tzinfo=OwnZone()), "type:datetime", "unknown_type"),
        (float("nan"), None, "not_finite"),
        (Decimal("sNaN"), None, "not_finite"),
        ([0] * 2_000, [0] * 998, "too_many_values"),
    ],
)
def test_what_cannot_be_kept_is_replaced_and_counted(
    value: Any, expected: Any, reason: str, client: SFRAGClient
) -> None:
    assert kept(client, value) == expected
    assert client.get_status().replaced[reason] >= 1


def test_there_are_limits_to_depth_size_and_circles(client: SFRAGClient) -> None:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    ring["and"] = ring
    assert list(kept(client, ring).values()) == ["type:dict", "type:dict"]
    deep: Any = 0
    for _ in range(20):
        deep = [deep]
    kept(client, deep)
    client.trace_query("q", filters=dict.fromkeys(map(str, range(2_000)), 0))
    client.trace_query("q", filters=[("no", "mapping")])  # type: ignore[arg-type]
    assert set(client.get_status().replaced) == {"cycle", "nested_too_deep", "too_many_values", "not_a_mapping"}


@pytest.mark.parametrize(
    ("given", "expected", "reason"),
    [
        (timedelta(milliseconds=1.5), 1.5, None),
        (Decimal(2), 2.0, None),
        (None, None, None),
        (-1, None, "latency_ms"),
        (0.0, 0.0, None),
        (1e300, 1e12, "latency_ms_too_long"),
        (0.0004, 0.0, None),
    ],
)
def test_a_time_is_a_whole_number_of_microseconds(
    given: Any, expected: float | None, reason: str | None, client: SFRAGClient, sink: MemorySink
) -> None:
    client.trace_query("q", latency_ms=given)
    assert sink.events[0].payload.get("latency_ms") == expected
    assert set(client.get_status().replaced) == ({reason} if reason else set())


def test_names_and_ids_of_other_types_are_written_out(client: SFRAGClient, sink: MemorySink) -> None:
    client.trace_query("q", session_id=UUID(int=2), retriever_name=Level.HIGH, namespace=0.5, pipeline_name="x" * 300)  # type: ignore[arg-type]
    payload = sink.events[0].payload
    assert payload["session_id"] == str(UUID(int=2))
    assert (payload["retriever_name"], payload["namespace"], payload["pipeline_name"]) == ("3", "0.5", "x" * 256)
    assert client.get_status().replaced == {"pipeline_name_too_long": 1}


def test_more_used_chunks_than_are_kept_are_cut(client: SFRAGClient, sink: MemorySink) -> None:
    client.configure(sinks=sink, delivery="sync", max_chunk_ids=2)
    client.trace_generation("s", "m", chunk_ids_used=["a", None, 2, "c", "d"])  # type: ignore[list-item]
    assert sink.events[-1].payload["chunk_ids_used"] == ["a", "2"]
    assert client.get_status().replaced == {"chunk_ids_used": 1, "chunk_ids_used_too_many": 1}


@pytest.mark.parametrize("text", ["z" * 64, "sha256:" + "z" * 64, "text:" + "a" * 64, "a b" * 21 + "a"])
def test_what_only_looks_like_a_digest_is_hashed(text: str, client: SFRAGClient, sink: MemorySink) -> None:
    client.trace_retrieval("s", [{"id": "a", "score": 0.1, "content_hash": text}], query_hash=text)
    payload = sink.events[0].payload
    assert payload["query_hash"] == payload["chunks"][0]["content_hash"] == hashlib.sha256(text.encode()).hexdigest()


def test_a_secret_at_the_end_of_what_is_looked_at_is_not_cut_in_two(
    connect: Callable[..., SFRAGClient], sink: MemorySink
) -> None:
    client = connect(sink, capture_messages=True)
    client.trace_generation("s", "m", error_message="x " * 200 + "y" * 3_600 + " a@b.example " + "z" * 2_000)
    client.trace_generation("s", "m", error_message=" " * 4_070 + "b" * 20 + "@example.com" + " more")
    long, cut = (event.payload["error_message"] for event in sink.events)
    assert len(long) <= 512
    assert long.startswith("x x ")
    assert "b" * 20 not in cut


@pytest.mark.parametrize("flag", [True, 1, np.True_, 1.0])
def test_a_flag_is_a_flag_whatever_says_it(flag: Any, client: SFRAGClient, sink: MemorySink) -> None:
    client.trace_retrieval("s", [], budget_exhausted=flag)
    assert sink.events[0].payload["budget_exhausted"] is True


@pytest.mark.parametrize("query", [5, 0.5, b"5", 10**5_000, type("Bundle", (), {"query_str": "5"})()], ids=type)
def test_a_query_may_be_what_a_framework_makes_of_it(query: Any, strict: SFRAGClient) -> None:
    assert strict.trace_query(query)


def test_what_was_not_said_is_absent_and_zero_is_zero(client: SFRAGClient, sink: MemorySink) -> None:
    client.trace_query("q")
    client.trace_retrieval("s")
    client.trace_rerank("s", "reranker")
    client.trace_generation("s", "m")
    client.trace_evaluation("s")
    measures = {"latency_ms", "context_tokens", "prompt_tokens", "output_tokens", "input_count", "output_count"}
    for event in sink.events:
        assert not measures & event.payload.keys()
        assert None not in event.payload.values()
    client.trace_generation("s", "m", prompt_tokens=0, output_tokens=0, latency_ms=0.0)
    assert {name: sink.events[-1].payload[name] for name in ("prompt_tokens", "output_tokens", "latency_ms")} == {
        "prompt_tokens": 0,
        "output_tokens": 0,
        "latency_ms": 0.0,
    }
    client.end_session(sink.events[0].session_id)
    assert sink.events[-1].payload["total_latency_ms"] == 0.0


@pytest.mark.parametrize(("said", "assumed"), [({}, ["top_k"]), ({"top_k": None}, ["top_k"]), ({"top_k": 5}, None)])
def test_a_top_k_that_nobody_said_is_the_default_and_marked(
    said: dict[str, Any], assumed: list[str] | None, client: SFRAGClient, sink: MemorySink
) -> None:
    client.trace_query("q", **said)
    assert sink.events[0].payload["top_k"] == 5
    assert sink.events[0].payload.get("assumed") == assumed


def test_what_is_known_of_an_answer_can_be_said(client: SFRAGClient, sink: MemorySink) -> None:
    said: dict[str, Any] = {
        "response_id": "resp-1",
        "response_model": "m-2026",
        "finish_reasons": ["stop", "length"],
        "cached_tokens": 5,
        "cache_write_tokens": 2,
        "reasoning_tokens": 3,
        "temperature": 0.5,
        "stream": True,
        "cost_usd": 0.25,
        "cost_basis": "estimated: list 1",
        "status": "cancelled",
    }
    client.trace_query("q", session_id="s", embedding_provider="openai", conversation_id="c")
    client.trace_generation("s", "m", **said)
    asked, answered = (event.payload for event in sink.events)
    assert (asked["embedding_provider"], asked["conversation_id"]) == ("openai", "c")
    assert {name: answered[name] for name in said} == said
    assert client.end_session("s").status == "partial"


@pytest.mark.parametrize("given", [-1, True])
def test_a_cost_is_an_amount(given: float, client: SFRAGClient, sink: MemorySink) -> None:
    client.trace_generation("s", "m", cost_usd=given, temperature=-0.5)
    assert "cost_usd" not in sink.events[0].payload
    assert sink.events[0].payload["temperature"] == -0.5
    assert set(client.get_status().replaced) == {"cost_usd"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Token budget of 8192 exhausted after 47 chunks", True),
        ("time budget of 5000 ms exceeded during reranking pass", True),
        ("max_tokens=8192", True),
        ("budget for Anna Smith exhausted", False),
        ("8192", False),
        ("sha256:" + "ab" * 32, False),
        ("limit " * 50, False),
        (8192, False),
    ],
)
def test_a_ceiling_is_told_in_numbers_and_known_words_or_not_at_all(
    given: object, kept: bool, client: SFRAGClient, sink: MemorySink
) -> None:
    client.trace_retrieval("s", ceiling_reached=given)  # type: ignore[arg-type]
    assert sink.events[0].payload.get("ceiling_reached") == (given if kept else None)
    assert set(client.get_status().replaced) == (set() if kept else {"ceiling_reached"})


def test_more_was_found_than_came_back(client: SFRAGClient, sink: MemorySink) -> None:
    client.trace_retrieval("s", [{"id": "a", "score": 1.0}, {"id": "b", "score": 0.5}], total_found=1)
    assert sink.events[0].payload["total_found"] == 2
