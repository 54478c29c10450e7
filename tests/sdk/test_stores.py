"""Results as stores document them, whole responses and single hits: ids, scores, texts and counts are read right."""

from __future__ import annotations

import hashlib
from collections import namedtuple
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanforge.sdk import SFRAGClient
from spanforge.sinks.memory import MemorySink

ONE, TWO = UUID(int=1), UUID(int=2)
Row = namedtuple("Row", ["id", "text", "distance"])  # noqa: PYI024  what psycopg's namedtuple_row makes


def retrieved(client: SFRAGClient, hits: Any, **details: Any) -> list[dict[str, Any]]:
    client.trace_retrieval("s", hits, **details)
    (sink,) = client.cell.get().dispatcher.sinks
    assert isinstance(sink, MemorySink)
    return sink.of_type("llm.rag.retrieved")


def scores(found: dict[str, Any]) -> list[tuple[str, float | None]]:
    return [(chunk["chunk_id"], chunk.get("score")) for chunk in found["chunks"]]


def weaviate_object(uuid: UUID, **metadata: float) -> SimpleNamespace:
    return SimpleNamespace(uuid=uuid, metadata=SimpleNamespace(**metadata), properties={"text": "text"}, vector={})


RESPONSES: dict[str, tuple[Any, list[tuple[str, float | None]], int]] = {
    "Elasticsearch": (
        {
            "took": 1,
            "timed_out": False,
            "hits": {
                "total": {"value": 120, "relation": "eq"},
                "max_score": 3.0,
                "hits": [
                    {"_index": "i", "_id": "a", "_score": 3.0, "_source": {"text": "text"}},
                    {"_index": "i", "_id": "b", "_score": 1.0, "_source": {"text": "text"}},
                ],
            },
        },
        [("a", 0.75), ("b", 0.5)],
        120,
    ),
    "Elasticsearch's response object": (
        SimpleNamespace(body={"hits": {"total": 1, "hits": [{"_id": "a", "_score": 1, "_source": {"text": "text"}}]}}),
        [("a", 1.0)],
        1,
    ),
    "Pinecone": (
        SimpleNamespace(matches=[{"id": "a", "score": 0.9, "metadata": {"text": "text"}}], namespace=""),
        [("a", 0.9)],
        1,
    ),
    "Pinecone with text": (
        {"result": {"hits": [{"_id": "a", "_score": 0.9, "fields": {"text": "text"}}]}, "usage": {"read_units": 1}},
        [("a", 0.9)],
        1,
    ),
    "Azure": (
        {
            "@odata.count": 40,
            "value": [
                {"@search.score": 0.03, "@search.reranker_score": 3.0, "id": "a", "content": "text"},
                {"@search.score": 0.04, "@search.reranker_score": 1.0, "id": "b", "content": "text"},
            ],
        },
        [("a", 0.75), ("b", 0.5)],
        40,
    ),
    "Vespa": (
        {
            "root": {
                "id": "toplevel",
                "relevance": 1.0,
                "fields": {"totalCount": 9},
                "children": [{"id": "a", "relevance": 0.4, "source": "s", "fields": {"text": "text"}}],
            }
        },
        [("a", 0.4)],
        9,
    ),
    "Typesense": (
        {"found": 7, "page": 1, "hits": [{"document": {"id": "a", "text": "text"}, "vector_distance": 1.0}]},
        [("a", 0.5)],
        7,
    ),
    "Bedrock": (
        {
            "retrievalResults": [
                {
                    "content": {"text": "text", "type": "TEXT"},
                    "location": {"type": "S3", "s3Location": {"uri": "s3://b/k"}},
                    "score": 0.6,
                    "metadata": {"x-amz-bedrock-kb-chunk-id": "a"},
                }
            ]
        },
        [("a", 0.6)],
        1,
    ),
    "OpenAI's vector stores": (
        SimpleNamespace(
            object="vector_store.search_results.page",
            data=[
                SimpleNamespace(
                    file_id="a", filename="f", score=0.8, attributes={}, content=[{"type": "text", "text": "text"}]
                )
            ],
        ),
        [("a", 0.8)],
        1,
    ),
    "OpenAI's file search": (
        SimpleNamespace(
            id="resp",
            output=[
                SimpleNamespace(
                    id="fs",
                    type="file_search_call",
                    results=[SimpleNamespace(file_id="a", filename="f", score=0.8, text="text", attributes={})],
                ),
                SimpleNamespace(id="m", type="message", content=[]),
            ],
        ),
        [("a", 0.8)],
        1,
    ),
    "Weaviate": (
        SimpleNamespace(objects=[weaviate_object(ONE, distance=0.0), weaviate_object(TWO, distance=1.0)]),
        [(str(ONE), 1.0), (str(TWO), 0.5)],
        2,
    ),
    "Weaviate's hybrid search": (
        SimpleNamespace(objects=[weaviate_object(ONE, score=0.7)]),
        [(str(ONE), 0.7)],
        1,
    ),
    "FAISS": (
        (np.array([[0.0, 1.0, 3.4e38]], "float32"), np.array([[4, 2, -1]])),
        [("4", 1.0), ("2", 0.5)],
        2,
    ),
    "pgvector": ([(7, "text", 0.0), (8, "text", 1.0)], [("7", 1.0), ("8", 0.5)], 2),
    "pgvector by name": ([Row("a", "text", 0.0), Row("b", "text", 1.0)], [("a", 1.0), ("b", 0.5)], 2),
    "pgvector without a name": ([{"id": 1, "content": "text", "?column?": -0.0}], [("1", None)], 1),
    "LangChain with a distance": (
        [(SimpleNamespace(id="a", page_content="text"), 0.0), (SimpleNamespace(id="b", page_content="text"), 1.0)],
        [("a", 1.0), ("b", 0.5)],
        2,
    ),
    "LangChain, compressed": (
        [SimpleNamespace(id="a", page_content="text", metadata={"relevance_score": 0.2})],
        [("a", 0.2)],
        1,
    ),
    "Qdrant over HTTP": (
        {"result": {"points": [{"id": 3, "score": 0.9, "payload": {"text": "text"}}]}, "status": "ok"},
        [("3", 0.9)],
        1,
    ),
    "Milvus over HTTP": (
        {"code": 0, "data": [{"id": 1, "distance": 0.9, "text": "text"}, {"id": 2, "distance": 0.4, "text": "text"}]},
        [("1", 0.9), ("2", 0.4)],
        2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_is_read_as_its_store_documents_it(name: str, client: SFRAGClient) -> None:
    response, expected, total = RESPONSES[name]
    (found,) = retrieved(client, response)
    assert scores(found) == [(chunk_id, score and pytest.approx(score)) for chunk_id, score in expected]
    assert (found["status"], found["total_found"]) == ("ok", total)
    if name != "FAISS":
        assert {chunk["content_hash"] for chunk in found["chunks"]} == {hashlib.sha256(b"text").hexdigest()}


def test_where_a_hit_comes_from_is_read_too(client: SFRAGClient) -> None:
    assert retrieved(client, RESPONSES["Bedrock"][0])[-1]["chunks"][0]["source"] == "s3://b/k"
    assert retrieved(client, RESPONSES["OpenAI's file search"][0])[-1]["chunks"][0]["source"] == "f"


@pytest.mark.parametrize(
    "nothing",
    [
        None, [], (), {}.values(), {"matches": []}, {"documents": []}, {"hits": []}, {"points": []}, {"results": []},
        {"ids": [], "documents": []}, {"ids": [[]], "distances": [[]], "documents": [[]]}, {"value": []},
        {"hits": {"hits": [], "total": {"value": 0}}}, {"result": {"hits": []}}, {"result": []}, {"data": []},
        {"retrievalResults": []}, {"found": 0, "hits": []}, SimpleNamespace(points=[]), SimpleNamespace(objects=[]),
        SimpleNamespace(matches=[]), SimpleNamespace(groups=[]), ([], None), [[]],
        (np.zeros((1, 2), "float32"), np.full((1, 2), -1)), np.array([]),
    ],
    ids=repr,
)  # fmt: skip
def test_nothing_found_is_nothing(nothing: Any, client: SFRAGClient) -> None:
    (found,) = retrieved(client, nothing)
    assert (found["chunks"], found["total_found"], found["status"]) == ([], 0, "ok")
    assert client.get_status().replaced == {}


@pytest.mark.parametrize("unknown", ["text", 7, 0.5, object(), {"error": "no"}, {}, b"x", SimpleNamespace(status=500)])
def test_an_unknown_shape_is_no_chunk(unknown: Any, client: SFRAGClient) -> None:
    (found,) = retrieved(client, unknown)
    assert (found["chunks"], found["total_found"], found["status"]) == ([], 0, "partial")
    found = retrieved(client, [{"id": "a", "score": 0.5}, object()])[-1]
    assert (scores(found), found["status"], found["total_found"]) == ([("a", 0.5)], "partial", 2)
    assert retrieved(client, unknown, status="error")[-1]["status"] == "error"
    assert client.get_status().replaced == {"chunks_unreadable": 3}


def test_each_query_of_a_batch_is_a_retrieval_of_its_own(client: SFRAGClient) -> None:
    response = {"ids": [["a", "b"], ["c"], []], "distances": [[0.0, 1.0], [3.0], []]}
    first, second, third = retrieved(client, response, latency_ms=5.0)
    assert (scores(first), scores(second), scores(third)) == ([("a", 1.0), ("b", 0.5)], [("c", 0.25)], [])
    assert [found.get("latency_ms") for found in (first, second, third)] == [5.0, None, None]
    client.trace_rerank("s", "m", chunks=[[{"id": "a", "score": 2.0}], []])
    with client.retrieval("s") as scope:
        scope.record([[{"id": "a", "score": 0.5}], [{"id": "b", "score": 0.25}]])
    assert [scores(found) for found in retrieved(client, None)[3:]] == [[("a", 0.5)], [("b", 0.25)], []]


@pytest.mark.parametrize(
    ("raw", "metric", "expected", "rule"),
    [
        ([0.9], "COSINE", [0.9], None),
        ([1.0], "L2", [0.5], "distance"),
        ([0.2, 0.9], "similarity", [0.2, 0.9], None),
        ([0.9, 0.2], "<=>", [1 / 1.9, 1 / 1.2], "distance"),
        ([3.0, 1.0], "ip", [0.75, 0.5], "saturating"),
        ([-3.0, 3.0], "<#>", [pytest.approx(0.9525741), pytest.approx(0.0474259)], "negated"),
        ([0.9], "", [None], None),
        ([0.1, 0.5, 0.2], "", [None, None, None], None),
    ],
)
def test_the_metric_decides_else_the_order(
    raw: list[float], metric: str, expected: list[Any], rule: str | None, client: SFRAGClient
) -> None:
    hits = [{"id": number, "distance": value, "entity": {"x": 1}} for number, value in enumerate(raw)]
    (found,) = retrieved(client, hits, metric=metric)
    assert [chunk.get("score") for chunk in found["chunks"]] == expected
    assert found.get("score_rule") == rule
    undecided = expected[0] is None
    assert [chunk.get("raw_score") for chunk in found["chunks"]] == (raw if undecided or rule else [None] * len(raw))
    assert ("score_undecided" in client.get_status().replaced) is undecided


@given(
    raw=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6),
    name=st.sampled_from(["score", "distance", "_distance", "similarity", "_score", "@search.score"]),
)
def test_no_hit_has_a_higher_score_than_one_before_it(raw: list[float], name: str, client: SFRAGClient) -> None:
    found = retrieved(client, [{"id": number, name: value} for number, value in enumerate(raw)])[-1]
    mapped = [chunk["score"] for chunk in found["chunks"] if "score" in chunk]
    assert mapped == sorted(mapped, reverse=True)
    assert len(mapped) in {0, len(raw)}
    kept = [chunk.get("raw_score", chunk.get("score")) for chunk in found["chunks"]]
    assert kept == raw


def test_a_metric_that_is_none_is_counted(client: SFRAGClient) -> None:
    retrieved(client, [{"id": "a", "score": 0.5}], metric="nearness")
    assert client.get_status().replaced == {"metric": 1}
