"""The results of real stores, run here: what each one's own client returns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spanforge.sdk import sf_rag
from spanforge.testing import capture

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

VECTORS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [1.0, 1.0]}
Retrieved = list[list[tuple[str, float | None]]]


def recorded(response: Any, **details: Any) -> Retrieved:
    """Return ids and scores, rounded, of each retrieval that a response is recorded as."""
    with capture(strict=False) as events:
        sf_rag.trace_retrieval("s", response, **details)
        found = events.of_type("llm.rag.retrieved")
    assert all(one["status"] == "ok" and one["total_found"] == len(one["chunks"]) for one in found)
    return [
        [(chunk["chunk_id"], round(chunk["score"], 3) if "score" in chunk else None) for chunk in one["chunks"]]
        for one in found
    ]


def test_chroma() -> None:
    chromadb = pytest.importorskip("chromadb", reason="chromadb is not installed")
    collection = chromadb.EphemeralClient().create_collection("letters")
    collection.add(ids=list(VECTORS), embeddings=list(VECTORS.values()), documents=list(VECTORS))
    query: Callable[..., Any] = collection.query
    nearest = [("a", 1.0), ("c", 0.5)]
    assert recorded(query(query_embeddings=[[1, 0]], n_results=2)) == [nearest]
    assert recorded(query(query_embeddings=[[1, 0], [0, 1]], n_results=2)) == [nearest, [("b", 1.0), ("c", 0.5)]]
    assert recorded(query(query_embeddings=[[1, 0]], where={"no": "such"})) == [[]]
    assert recorded(collection.get(ids=["b", "c"])) == [[("b", None), ("c", None)]]
    assert recorded(collection.get(ids=["none"])) == [[]]


def test_qdrant() -> None:
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    models, client = qdrant.models, qdrant.QdrantClient(":memory:")
    for metric in (models.Distance.COSINE, models.Distance.EUCLID):
        client.create_collection(metric.name, vectors_config=models.VectorParams(size=2, distance=metric))
        points = [models.PointStruct(id=n, vector=v, payload={"g": n % 2}) for n, v in enumerate(VECTORS.values())]
        client.upsert(metric.name, points)
    nowhere = models.Filter(must=[models.FieldCondition(key="g", match=models.MatchValue(value=9))])
    one, other = [models.QueryRequest(query=query, limit=1) for query in ([1.0, 0.0], [0.0, 1.0])]
    assert recorded(client.query_points("COSINE", [1.0, 0.0], limit=2)) == [[("0", 1.0), ("2", 0.707)]]
    assert recorded(client.query_points("EUCLID", [1.0, 0.0], limit=2).points) == [[("0", 1.0), ("2", 0.5)]]
    assert recorded(client.query_points("EUCLID", [1.0, 0.0], query_filter=nowhere)) == [[]]
    assert recorded(client.query_batch_points("COSINE", [one, other])) == [[("0", 1.0)], [("1", 1.0)]]
    groups = client.query_points_groups("COSINE", group_by="g", query=[1.0, 0.0], group_size=2)
    assert recorded(groups) == [[("0", 1.0), ("2", 0.707), ("1", 0.0)]]
    assert recorded(client.scroll("COSINE", limit=2)) == [[("0", None), ("1", None)]]
    assert recorded(client.scroll("COSINE", scroll_filter=nowhere)) == [[]]


def test_milvus(tmp_path: Path) -> None:
    milvus = pytest.importorskip("pymilvus", reason="pymilvus is not installed")
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    client = milvus.MilvusClient(str(tmp_path / "m.db"))
    expected = {"COSINE": [("0", 1.0), ("2", 0.707), ("1", 0.0)], "L2": [("0", 1.0), ("2", 0.5), ("1", 0.333)]}
    for metric, nearest in expected.items():
        client.create_collection(metric, dimension=2, metric_type=metric)
        client.insert(metric, [{"id": number, "vector": vector} for number, vector in enumerate(VECTORS.values())])
        assert recorded(client.search(metric, [[1.0, 0.0]], limit=3)) == [nearest]
        assert recorded(client.search(metric, [[1.0, 0.0]], limit=1)) == [[("0", None)]]
        assert recorded(client.search(metric, [[1.0, 0.0], [0.0, 1.0]], limit=1), metric=metric) == [
            [("0", 1.0)],
            [("1", 1.0)],
        ]
        assert recorded(client.search(metric, [[1.0, 0.0]], filter="id > 9")) == [[]]


def test_lancedb(tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb", reason="lancedb is not installed")
    rows = [{"id": name, "vector": vector} for name, vector in VECTORS.items()]
    table = lancedb.connect(tmp_path).create_table("letters", rows)
    for metric, nearest in {"l2": [("a", 1.0), ("c", 0.5)], "cosine": [("a", 1.0), ("c", 0.773)]}.items():
        found = table.search([1.0, 0.0]).metric(metric).limit(2)
        assert recorded(found.to_list()) == recorded(found.to_arrow(), metric=metric) == [nearest]
        nothing = table.search([1.0, 0.0]).where("id = 'none'")
        assert recorded(nothing.to_list()) == recorded(nothing.to_arrow()) == [[]]


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"id": ["a", "b"], "_distance": [0.0, 1.0]})
    assert recorded(frame) == [[("a", 1.0), ("b", 0.5)]]
    assert recorded(frame[frame.id == "none"]) == [[]]


@pytest.mark.parametrize("index", ["IndexFlatL2", "IndexFlatIP"])
def test_faiss(index: str) -> None:
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    vectors = faiss.__dict__[index](2)
    vectors.add(np.array(list(VECTORS.values()), "float32"))
    nearest = {"IndexFlatL2": ["0", "2", "1"], "IndexFlatIP": ["0", "2", "1"]}[index]
    (found,) = recorded(vectors.search(np.array([[2.0, -1.0]], "float32"), 5))
    assert [chunk_id for chunk_id, _ in found] == nearest
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
