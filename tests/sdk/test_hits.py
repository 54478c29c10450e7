"""What stores and frameworks hand over, as one kind of chunk."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import ChainMap, deque
from contextlib import closing
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from spanforge.sdk import SFRAGClient
from spanforge.sinks.memory import MemorySink

DIGEST = hashlib.sha256(b"text").hexdigest()


def database_row(query: str) -> sqlite3.Row:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(query).fetchone()


def read(client: SFRAGClient, hits: Any) -> list[dict[str, Any]]:
    client.trace_retrieval("s", hits)
    (sink,) = client.cell.get().dispatcher.sinks
    assert isinstance(sink, MemorySink)
    return sink.of_type("llm.rag.retrieved")[-1]["chunks"]


@pytest.mark.parametrize(
    ("hit", "expected"),
    [
        ({"chunk_id": "a", "score": 0.5, "source": "s"}, {"chunk_id": "a", "score": 0.5, "source": "s"}),
        ({"chunk_id": "a", "score": 0.5, "source": "s", "content_hash": DIGEST}, {"content_hash": DIGEST}),
        ({"chunk_id": "a", "score": 0.5, "source": "s", "content_hash": "text"}, {"content_hash": DIGEST}),
        (
            MappingProxyType({"id": "a", "score": 0.5, "metadata": ChainMap({"source": "s"})}),
            {"source": "s", "score": 0.5},
        ),
        (database_row("SELECT 'a' AS id, 0.5 AS score, 's' AS source"), {"chunk_id": "a", "score": 0.5, "source": "s"}),
        ({"id": 7, "score": "0.83"}, {"chunk_id": "7", "score": 0.83}),
        ({"_id": UUID(int=1), "_score": np.float32(0.5)}, {"chunk_id": str(UUID(int=1)), "score": 0.5}),
        ({"doc_id": b"\xff", "similarity": 1}, {"chunk_id": "ff", "score": 1.0}),
        ({"id": "", "text": "text", "score": 0.1}, {"chunk_id": f"sha256:{DIGEST[:16]}", "content_hash": DIGEST}),
        ({"id": "a", "score": 0.1, "metadata": {"source": Path("a.md"), "page": 3}}, {"source": "a.md"}),
        ({"id": "a", "score": 0.1, "url": 5}, {"source": "5"}),
        ({"id": "a", "score": 0.1, "rank": 2}, {"rank": 2}),
        ({"id": "a", "score": 0.9, "raw_score": 23.7}, {"score": 0.9, "raw_score": 23.7}),
        ({"id": "a", "distance": 1.0}, {"score": 0.5, "raw_score": 1.0}),
        ({"id": "a", "score": 0.3, "node": "city"}, {"chunk_id": "a"}),
        ((SimpleNamespace(page_content="text", id="d", metadata={}), 0.5), {"chunk_id": "d", "content_hash": DIGEST}),
        ((0.5, SimpleNamespace(id="d")), {"chunk_id": "d", "score": 0.5}),
        ((3, 0.5), {"chunk_id": "3", "score": 0.5}),
        (SimpleNamespace(node=SimpleNamespace(node_id="n", text="text"), score=0.25), {"chunk_id": "n", "score": 0.25}),
        ("text", {"content_hash": DIGEST, "score": None}),
        ({"id": "x" * 600, "score": 0.5}, {"chunk_id": "sha256:" + hashlib.sha256(b"x" * 600).hexdigest()}),
    ],
)
def test_a_hit_of_any_shape_is_a_chunk(hit: Any, expected: dict[str, Any], client: SFRAGClient) -> None:
    (chunk,) = read(client, [hit])
    assert {name: chunk.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "result",
    [
        {"matches": [{"id": "a", "score": 0.5}, {"id": "b", "score": 0.4}]},
        SimpleNamespace(points=[SimpleNamespace(id="a", score=0.5), SimpleNamespace(id="b", score=0.4)]),
        {"ids": [["a", "b"]], "scores": [[0.5, 0.4]], "documents": [["x", None]], "metadatas": None},
        {"ids": ["a", "b"], "scores": np.array([0.5, 0.4])},
        deque([{"id": "a", "score": 0.5}, {"id": "b", "score": 0.4}]),
        {"x": {"id": "a"}, "y": {"id": "b"}}.values(),
    ],
)
def test_a_result_of_any_shape_is_a_list_of_hits(result: Any, client: SFRAGClient) -> None:
    assert [chunk["chunk_id"] for chunk in read(client, result)] == ["a", "b"]


def test_a_table_is_a_list_of_hits(client: SFRAGClient) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    chunks = read(client, arrow.table({"id": ["a", "b"], "score": [0.5, 0.4]}))
    assert [(chunk["chunk_id"], chunk["score"]) for chunk in chunks] == [("a", 0.5), ("b", 0.4)]


def test_scores_and_positions_in_arrays_are_the_hits_of_one_question(client: SFRAGClient) -> None:
    chunks = read(client, (np.array([0.9, 0.8, 0.0]), np.array([3, 1, -1])))
    assert [chunk["chunk_id"] for chunk in chunks] == ["3", "1"]


def test_arrays_that_do_not_belong_together_are_nothing_that_was_found(client: SFRAGClient) -> None:
    assert read(client, (np.array([0.9, 0.8, 0.7]), np.array([3, 1]))) == []
    assert client.get_status().replaced == {"chunks_unreadable": 2}


def test_what_holds_no_hit_is_one_or_none(client: SFRAGClient) -> None:
    assert read(client, None) == []
    assert len(read(client, {"id": "a"})) == 1
    assert read(client, (hit for hit in [{"id": "a"}])) == []
    assert client.get_status().replaced == {"score_missing": 1, "chunks_iterator": 1}


@pytest.mark.parametrize(
    ("raw", "rule", "mapped"),
    [
        ([0.1, 1.0, 0.0], None, [0.1, 1.0, 0.0]),
        ([1.0000001, 0.8, -1e-7], "clamped", [1.0, 0.8, 0.0]),
        ([-1.0, 0.0, 0.5], "cosine", [0.0, 0.5, 0.75]),
        ([-1.0000001, 0.0, 1.0000001], "cosine", [0.0, 0.5, 1.0]),
        ([0.0, 1.0, 3.0], "saturating", [0.0, 0.5, 0.75]),
        ([3.0, 3.0, 3.0], "saturating", [0.75, 0.75, 0.75]),
        ([0.4, 0.4], None, [0.4, 0.4]),
        ([0.0, 0.0], None, [0.0, 0.0]),
        ([-800.0, 0.0, 800.0], "logistic", [0.0, 0.5, 1.0]),
    ],
)
def test_scores_are_mapped_by_one_rule_that_is_named_and_keeps_their_order(
    raw: list[float], rule: str | None, mapped: list[float], client: SFRAGClient, sink: MemorySink
) -> None:
    chunks = read(client, [{"chunk_id": str(n), "score": score, "source": ""} for n, score in enumerate(raw)])
    assert [chunk["score"] for chunk in chunks] == pytest.approx(mapped)
    assert sink.events[-1].payload.get("score_rule") == rule
    assert [chunk.get("raw_score", chunk["score"]) for chunk in chunks] == raw


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None, "high", object()])
def test_a_score_that_is_none_is_absent_and_changes_no_other(score: Any, client: SFRAGClient) -> None:
    chunks = read(client, [{"id": "a", "score": 3.0}, {"id": "b", "score": score}])
    assert [chunk.get("score") for chunk in chunks] == [0.75, None]
    assert "raw_score" not in chunks[1]


def test_a_hit_whose_own_code_fails_costs_itself_alone(client: SFRAGClient) -> None:
    class Broken(dict[str, Any]):
        pass

    class Deceptive:
        __module__ = "numpy"
        shape = ()

        def item(self) -> Any:
            raise OSError

    chunks = read(client, [{"id": "a", "score": 0.5}, {"id": Deceptive()}, Broken(id="c", score=0.5)])
    assert [chunk["chunk_id"] for chunk in chunks] == ["a", "chunk-2", "c"]
    assert client.get_status().replaced == {"chunk": 1}
