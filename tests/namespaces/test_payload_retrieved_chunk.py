"""RetrievedChunk: one chunk a retriever returned."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.retrieval import RetrievedChunk


def test_it_takes_its_fields_by_position_in_the_order_people_know() -> None:
    chunk = RetrievedChunk("c1", "h", 0.5, "a.md", {"page": 1})
    assert chunk == RetrievedChunk(chunk_id="c1", content_hash="h", score=0.5, source="a.md", metadata={"page": 1})
    assert chunk.to_dict() == {
        "chunk_id": "c1",
        "content_hash": "h",
        "score": 0.5,
        "source": "a.md",
        "metadata": {"page": 1},
    }
    assert RetrievedChunk.from_dict(chunk.to_dict()) == chunk


def test_absent_fields_are_left_out_and_unknown_ones_passed_over() -> None:
    chunk = RetrievedChunk.from_dict({"chunk_id": "c", "raw_score": 3.5, "rank": 2, "from_the_future": 1})
    assert chunk.to_dict()["raw_score"] == 3.5
    assert "from_the_future" not in chunk.to_dict()
    assert "rank" not in RetrievedChunk("c").to_dict()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"chunk_id": ""}, "chunk_id"),
        ({"chunk_id": "c", "score": 1.5}, "score"),
        ({"chunk_id": "c", "score": float("nan")}, "score"),
        ({"chunk_id": "c", "rank": 0}, "rank"),
        ({}, "chunk_id"),
    ],
)
def test_invalid_values_are_named_and_not_repeated(values: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^RetrievedChunk\.{field}: ") as caught:
        RetrievedChunk(**values)  # type: ignore[arg-type]
    assert "1.5" not in str(caught.value)
    assert caught.value.__context__ is None
    assert isinstance(caught.value, ValueError)


def test_an_error_by_position_is_named_too() -> None:
    with pytest.raises(InvalidPayloadError, match=r"^RetrievedChunk\.score: "):
        RetrievedChunk("c", "h", "very secret text")  # type: ignore[arg-type]


def test_it_is_frozen_and_can_be_pickled() -> None:
    chunk = RetrievedChunk("c")
    with pytest.raises(FrozenInstanceError):
        chunk.score = 1.0  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(chunk)) == chunk  # noqa: S301  made here
