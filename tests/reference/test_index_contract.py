"""Every engine keeps the same promises: found by the same words, closed by the same selections, gone when deleted."""

from __future__ import annotations

import numpy as np
import pytest
from reference.conftest import OpenEngine

from spanforge.reference.failures import IndexFull, InvalidInput
from spanforge.reference.index import Index, IndexRow, SearchRequest, Selection
from spanforge.reference.models import Filter


def unit(seed: int) -> np.ndarray:
    vector = np.random.default_rng(seed).standard_normal(8).astype(np.float32)
    return vector / np.linalg.norm(vector)


def row(name: str, text: str, seed: int = 0, **fields: object) -> IndexRow:
    defaults: dict[str, object] = {"org_id": "org", "data_source_id": "src", "document_id": "doc"}
    return IndexRow(chunk_id=name, text=text, vector=unit(seed), **{**defaults, **fields})  # type: ignore[arg-type]


def found(index: Index, text: str = "", seed: int | None = None, limit: int = 10, **selection: object) -> set[str]:
    vector = None if seed is None else unit(seed)
    chosen = Selection(**{"org_id": "org", **selection})  # type: ignore[arg-type]
    hits = index.search(SearchRequest(text, vector, limit, chosen))
    return {candidate.row.chunk_id for candidate in hits.candidates}


def test_upserted_rows_come_back_as_they_were(index: Index) -> None:
    stored = row(
        "a", "The lighthouse keeper's log", 1, source="log.md", media_type="text/markdown", heading="Logs", page=3,
        start=7, end=34, tokens=6, timestamp=1.5e9, quality=0.5, metadata='{"k": 1}', content_hash="f" * 64,
    )  # fmt: skip
    index.upsert([stored])
    [candidate] = index.search(SearchRequest("lighthouse", unit(1), 5, Selection("org"))).candidates
    for name in (
        "chunk_id",
        "org_id",
        "data_source_id",
        "document_id",
        "text",
        "source",
        "media_type",
        "heading",
    ):
        assert getattr(candidate.row, name) == getattr(stored, name)
    for name in ("page", "start", "end", "tokens", "timestamp", "quality", "metadata", "content_hash"):
        assert getattr(candidate.row, name) == getattr(stored, name)
    assert candidate.bm25 is not None
    assert candidate.bm25 > 0
    assert candidate.cosine == pytest.approx(1.0, abs=1e-5)


def test_rows_are_read_by_their_ids_inside_the_selection(index: Index) -> None:
    index.upsert([row("a", "one", heading="H"), row("b", "two", data_source_id="other"), row("c", "three", org_id="x")])

    def read(limit: int = 10, **selection: object) -> list[str]:
        chosen = Selection(**{"org_id": "org", "chunk_ids": ("a", "b", "c"), **selection})  # type: ignore[arg-type]
        return sorted(one.chunk_id for one in index.rows(chosen, limit))

    assert read() == ["a", "b"]
    assert read(data_source_ids=("src",)) == ["a"]
    assert read(data_source_ids=()) == read(chunk_ids=()) == []
    assert len(read(1)) == 1
    [stored] = index.rows(Selection("org", chunk_ids=("a",)), 1)
    assert (stored.text, stored.heading, stored.page) == ("one", "H", None)


def test_absent_values_stay_absent(index: Index) -> None:
    index.upsert([row("a", "plain words")])
    [candidate] = index.search(SearchRequest("words", None, 5, Selection("org"))).candidates
    assert (candidate.row.page, candidate.row.timestamp, candidate.row.quality) == (None, None, None)
    assert candidate.cosine is None


def test_words_are_matched_by_stem_and_without_stop_words(index: Index) -> None:
    index.upsert([row("a", "Engines were tested"), row("b", "The boats of the bay")])
    assert found(index, "testing an engine") == {"a"}
    assert found(index, "the of were") == set()


def test_headings_are_searched_with_the_passage(index: Index) -> None:
    index.upsert([row("a", "It is 28 days.", heading="Annual leave")])
    assert found(index, "leave") == {"a"}


def test_nearest_vectors_are_found_without_words(index: Index) -> None:
    index.upsert([row(f"c{i}", "same words", i) for i in range(20)])
    assert "c7" in found(index, seed=7, limit=1)


def test_an_upsert_replaces_by_chunk_id(index: Index) -> None:
    index.upsert([row("a", "first version")])
    index.upsert([row("a", "second version")])
    assert index.count(Selection("org")) == 1
    assert found(index, "first") == set()
    assert found(index, "second") == {"a"}


def test_a_selection_closes_off_other_organisations_and_sources(index: Index) -> None:
    index.upsert([row("a", "shared word"), row("b", "shared word", data_source_id="other")])
    index.upsert([row("c", "shared word", org_id="else")])
    assert found(index, "shared", 0, data_source_ids=("src",)) == {"a"}
    assert found(index, "shared", 0, org_id="else") == {"c"}
    assert found(index, "shared", 0, data_source_ids=()) == set()
    assert index.count(Selection("org", ("other",))) == 1


def test_the_selection_is_part_of_the_query_not_a_cut_afterwards(index: Index) -> None:
    """A user with one document among many better ones still finds it, whatever the limit."""
    index.upsert([row(f"x{i}", "tariff tariff tariff", 1, data_source_id="closed") for i in range(30)])
    index.upsert([row("mine", "a tariff among many other words of little matter here", 2)])
    assert found(index, "tariff", 1, limit=1, data_source_ids=("src",)) == {"mine"}


# One index serves all cases of a kind: opening an engine is what takes the time.
FILTERS = [
    (Filter(field="page", op="eq", value=1), {"a"}),
    (Filter(field="page", op="ne", value=1), {"b"}),
    (Filter(field="page", op="in", value=[1, 2]), {"a", "b"}),
    (Filter(field="page", op="in", value=[]), set()),
    (Filter(field="timestamp", op="ge", value=2.0e9), {"b"}),
    (Filter(field="timestamp", op="lt", value=2.0e9), {"a"}),
    (Filter(field="source", op="eq", value='it\'s "a".md'), {"a"}),
    (Filter(field="source", op="in", value=["b.md", "c.md"]), {"b", "c"}),
    (Filter(field="document_id", op="ne", value="d3"), {"a", "b"}),
    (Filter(field="quality", op="gt", value=0.4), {"a"}),
]
WRONG_FILTERS = [
    Filter(field="page", value="1"),
    Filter(field="source", value=3),
    Filter(field="page", op="in", value=3),
    Filter(field="source", op="eq", value=["a"]),
    Filter(field="quality", value=float("nan")),
    Filter(field="page", value=1.5),
    Filter(field="page", value=2.0),
    Filter(field="page", op="in", value=[1, 2**63]),
    Filter(field="timestamp", op="lt", value=-(2**63) - 1),
]
ATTACKS = [
    "x' OR 1=1 --",
    "x') OR ('1'='1",
    'x" or 1==1 or source == "',
    "\\' OR 1=1 --",
    "x\\",
    "%",
    "\x00' OR true",
]


def test_filters_select_by_typed_fields(index: Index) -> None:
    index.upsert(
        [
            row("a", "word", document_id="d1", page=1, timestamp=1.0e9, source='it\'s "a".md', quality=0.5),
            row("b", "word", document_id="d2", page=2, timestamp=2.5e9, source="b.md", quality=0.3),
            row("c", "word", document_id="d3", source="c.md"),
        ]
    )
    for condition, expected in FILTERS:
        assert found(index, "word", filters=(condition,)) == expected, (condition.field, condition.op)


def test_a_filter_of_the_wrong_type_is_refused(index: Index) -> None:
    index.upsert([row("a", "word")])
    for condition in WRONG_FILTERS:
        with pytest.raises(InvalidInput, match=f"filters: .*{condition.field}|filters: 'in'"):
            found(index, "word", filters=(condition,))


def test_a_value_cannot_end_its_literal(index: Index) -> None:
    index.upsert([row("a", "word", source="a.md"), row("b", "word", data_source_id="secret", source="b.md")])
    for attack in ATTACKS:
        filters = (Filter(field="source", value=attack),)
        assert found(index, "word", data_source_ids=("src",), filters=filters) == set(), attack
        assert found(index, "word", data_source_ids=(attack,)) == set(), attack
        assert found(index, "word", org_id=attack) == set(), attack
        assert index.delete(Selection("org", (attack,))) == 0, attack
    assert index.count(Selection("org")) == 2


def test_numbers_up_to_the_ends_of_their_fields_are_compared(index: Index) -> None:
    index.upsert([row("a", "word", page=1, timestamp=1.0e9, quality=0.5)])
    for field in ("page", "timestamp", "quality"):
        for op, value in (("lt", 2**63 - 1), ("gt", 1 - 2**63)):
            condition = Filter.model_validate({"field": field, "op": op, "value": value})
            assert found(index, "word", filters=(condition,)) == {"a"}, (field, op)


def test_deleted_rows_are_gone_from_both_searches(index: Index) -> None:
    index.upsert([row("a", "harbour", 1, document_id="d1"), row("b", "harbour", 1, document_id="d2")])
    assert index.delete(Selection("org", document_ids=("d1",))) == 1
    assert found(index, "harbour", 1) == {"b"}
    assert index.count(Selection("org")) == 1
    index.settle()
    assert found(index, "harbour", 1) == {"b"}


def test_a_deletion_can_spare_some_chunks(index: Index) -> None:
    index.upsert([row("a", "old"), row("b", "kept")])
    assert index.delete(Selection("org", ("src",), document_ids=("doc",), excluding_chunk_ids=("b",))) == 1
    assert index.count(Selection("org")) == 1


def test_the_version_changes_with_the_content(index: Index) -> None:
    versions = [index.version]
    index.upsert([row("a", "one")])
    versions.append(index.version)
    index.delete(Selection("org"))
    versions.append(index.version)
    assert len(set(versions)) == 3


def test_a_quota_refuses_all_of_a_write_or_none(open_engine: OpenEngine) -> None:
    index = open_engine(8, max_rows=2)
    index.upsert([row("a", "one"), row("b", "two")])
    with pytest.raises(IndexFull):
        index.upsert([row("b", "two again"), row("c", "three")])
    assert found(index, "again three") == set()
    index.upsert([row("b", "two changed")])
    assert index.count(Selection("org")) == 2


def test_lone_surrogates_and_nul_are_stored_in_a_readable_form(index: Index) -> None:
    index.upsert([row("a", "broken \ud800 text", source="na\udcffme")])
    assert found(index, "broken") == {"a"}


def test_an_empty_index_answers_empty(index: Index) -> None:
    assert found(index, "anything", 1) == set()
    assert index.count(Selection("org")) == 0
    assert index.delete(Selection("org")) == 0
