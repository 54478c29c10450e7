"""What one may not query changes nothing of what one is given, to the last digit, on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.api import embedder

from spanforge.reference import DataSource, Document, Pipeline, User
from spanforge.reference.failures import NoResults
from spanforge.reference.index import MemoryIndex
from spanforge.reference.index.lance import LanceIndex
from spanforge.reference.index.milvus import MilvusIndex
from spanforge.reference.models import Visibility

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BOB = User(user_id="bob", org_id="north")
ANN = User(user_id="ann", org_id="north")
QUERIES = ("falcon nests", "merger", "In which year are falcon nests noted?", "heron heron lagoon", "tide 1907")


@pytest.fixture(params=["memory", "lancedb", pytest.param("milvus", marks=pytest.mark.slow)])
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pipeline]:
    model = embedder()
    match request.param:
        case "memory":
            index: Any = MemoryIndex()
        case "lancedb":
            index = LanceIndex(tmp_path / "index", model.dimensions)
        case _:
            index = MilvusIndex(str(tmp_path / "index.db"), model.dimensions)
    with Pipeline(index=index, embedder=model) as opened:
        yield opened


def _note(number: int) -> Document:
    bird = ("falcon", "heron", "merger tide")[number % 3]
    text = f"Note number {number} about {bird} birds {'and their nests ' * (number % 5)}in {1900 + number}."
    return Document(document_id=f"d{number:03}", text=text)


def _given(pipeline: Pipeline, user: User) -> list[Any]:
    found: list[Any] = []
    for query in QUERIES:
        for filters in ([], [{"field": "document_id", "op": "ge", "value": "d050"}]):
            try:
                found.append(pipeline.retrieve(query, user=user, top_k=200, filters=filters).model_dump())
            except NoResults:
                found.append(None)
        answer = pipeline.ask(query, user=user)
        found.append(answer.model_dump(exclude={"session_id", "latencies_ms"}))
    return found


def test_hidden_documents_change_nothing(pipeline: Pipeline) -> None:
    pipeline.put_source(DataSource(data_source_id="open", org_id="north", owner_id="bob"), BOB)
    # More than a search asks for, so that which of them are asked for is at stake too.
    pipeline.ingest([_note(number) for number in range(150)], "open", user=BOB)
    before = _given(pipeline, BOB)
    assert sum(one is not None for one in before) > len(QUERIES)
    hidden = DataSource(data_source_id="hidden", org_id="north", owner_id="ann", visibility=Visibility.PERSONAL)
    pipeline.put_source(hidden, ANN)
    secret = [f"The merger of falcon and lagoon, page {i}. " + "Falcon nests. " * (i % 7) for i in range(60)]
    pipeline.ingest([Document(document_id=f"h{i}", text=text) for i, text in enumerate(secret)], "hidden", user=ANN)
    assert _given(pipeline, BOB) == before
    assert _given(pipeline, ANN) != before
    pipeline.delete("hidden", user=ANN)
    assert _given(pipeline, BOB) == before
