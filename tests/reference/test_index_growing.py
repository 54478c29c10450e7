"""An index in memory that grew answers as one that was made at once, and reads only what was added."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanforge.reference.index import IndexRow, MemoryIndex, SearchHits, SearchRequest, Selection, memory

ALL = Selection("org")
WORDS = ["crane", "quay", "ferry", "gate", "lamp"]
AXES = np.eye(4, dtype=np.float32)
one_row = st.tuples(
    st.integers(0, 9), st.sampled_from(["s", "t"]), st.lists(st.sampled_from(WORDS), max_size=6), st.integers(-1, 3)
)
step = st.one_of(st.lists(one_row, max_size=4), st.integers(0, 9))


def _row(number: int, source: str, words: list[str], axis: int) -> IndexRow:
    vector = None if axis < 0 else AXES[axis]
    return IndexRow(f"c{number}", "org", source, f"d{number}", " ".join(words), vector=vector)


def _found(hits: SearchHits) -> list[tuple[str, tuple[str, ...], float | None, float | None]]:
    return [(one.row.chunk_id, one.terms, one.bm25, one.cosine) for one in hits.candidates]


@given(st.lists(step, max_size=12), st.lists(st.sampled_from(WORDS), max_size=3), st.integers(0, 3))
def test_an_index_that_grew_finds_what_one_made_at_once_finds(
    steps: list[list[tuple[int, str, list[str], int]] | int], words: list[str], axis: int
) -> None:
    grown = MemoryIndex()
    for one in steps:
        if isinstance(one, int):
            grown.delete(Selection("org", document_ids=(f"d{one}",)))
        else:
            grown.upsert([_row(*row) for row in one])
        at_once = MemoryIndex()
        at_once.upsert(grown.rows(ALL, 100))
        for selection in (ALL, Selection("org", ("s",))):
            request = SearchRequest(" ".join(words), AXES[axis], 3, selection)
            assert _found(grown.search(request)) == _found(at_once.search(request))


def test_a_search_after_an_addition_reads_what_was_added_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    index = MemoryIndex()
    index.upsert([_row(number, "s", ["crane"], 0) for number in range(50)])
    request = SearchRequest("crane", AXES[0], 100, ALL)
    index.search(request)
    read: list[list[str]] = []
    count = memory.Counter

    def counted(terms: list[str]) -> memory.Counter[str]:
        read.append(terms)
        return count(terms)

    monkeypatch.setattr(memory, "Counter", counted)
    index.upsert([_row(50, "s", ["crane", "quay"], 1)])
    assert len(index.search(request).candidates) == 51
    assert sorted(read) == [["crane"], ["crane", "quay"]]  # the question, and the row that was added
