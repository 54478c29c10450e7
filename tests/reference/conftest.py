"""The engines that the tests of the reference RAG run over."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

import pytest

from spanforge.reference import Pipeline
from spanforge.reference.index import Index, MemoryIndex
from spanforge.reference.index.lance import LanceIndex
from spanforge.reference.index.milvus import MilvusIndex
from spanforge.testing import spanforge_events  # the plugin brings it where the package is installed

__all__ = ["spanforge_events"]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENGINES = ("memory", "lancedb", "milvus")
_collections = itertools.count()


class OpenEngine(Protocol):
    """Opens an empty index of the engine under test."""

    def __call__(self, dimensions: int, *, max_rows: int | None = None) -> Index: ...


@pytest.fixture(scope="session")
def milvus_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("milvus") / "lite.db")


@pytest.fixture
def open_engine(engine: str, tmp_path: Path, milvus_address: str) -> Iterator[OpenEngine]:
    opened: list[Index] = []

    def make(dimensions: int, *, max_rows: int | None = None) -> Index:
        match engine:
            case "memory":
                index: Index = MemoryIndex(max_rows=max_rows)
            case "lancedb":
                index = LanceIndex(tmp_path / f"lance{len(opened)}", dimensions, max_rows=max_rows)
            case _:
                # One embedded server for all tests, a collection for each.
                name = f"test_{next(_collections)}"
                index = MilvusIndex(milvus_address, dimensions, collection=name, max_rows=max_rows)
        opened.append(index)
        return index

    yield make
    for index in opened:
        index.close()


# The engine for clusters keeps the index contract in every run, and carries the whole pipeline in the slow lane.
PIPELINE_ENGINES = ("memory", "lancedb", pytest.param("milvus", marks=pytest.mark.slow))


@pytest.fixture
def pipeline(open_engine: OpenEngine) -> Iterator[Pipeline]:
    """An empty pipeline over each engine in turn, with the offline defaults."""
    opened = Pipeline(index=open_engine(256))
    yield opened
    opened.catalog.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        whole = "pipeline" in metafunc.fixturenames
        metafunc.parametrize("engine", PIPELINE_ENGINES if whole else ENGINES)


@pytest.fixture
def index(open_engine: OpenEngine) -> Index:
    return open_engine(8)
