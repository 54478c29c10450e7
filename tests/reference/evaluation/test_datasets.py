from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from spanforge.reference.evaluation import DatasetError, read_grounding, read_retrieval

DATA = Path(__file__).parent / "data"
CANARY = "zanzibar"
GOOD = {"id": "1", "subset": "s", "question": "q", "claim": CANARY, "contexts": [CANARY], "supported": 1}


def test_a_folder_in_beir_layout_is_read():
    garden = read_retrieval(DATA / "garden")
    assert (garden.name, len(garden.corpus), len(garden.queries)) == ("garden", 12, 10)
    assert garden.corpus["pond"].startswith("Pond\nA garden pond")
    assert garden.qrels["q2"] == {"hedgehogs": 2, "slugs": 1}


def test_claims_are_read_plain_or_packed(tmp_path: Path):
    plain = read_grounding(DATA / "garden-claims.jsonl")
    packed = tmp_path / "claims.jsonl.gz"
    packed.write_bytes(gzip.compress((DATA / "garden-claims.jsonl").read_bytes()))
    assert read_grounding(packed) == plain
    assert sum(pair.supported for pair in plain) == len(plain) / 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"claim": 3}, "claim"),
        ({"claim": None}, "claim"),
        ({"contexts": CANARY}, "contexts"),
        ({"contexts": [CANARY, 3]}, "contexts"),
        ({"supported": CANARY}, "supported"),
        ({"supported": 2}, "supported"),
        ({"question": 7}, "question"),
        ({"id": [CANARY]}, "id"),
    ],
)
def test_a_bad_field_is_named_with_its_line_and_without_its_text(tmp_path: Path, change: dict[str, object], field: str):
    file = tmp_path / "claims.jsonl"
    file.write_text(json.dumps(GOOD) + "\n\n" + json.dumps({**GOOD, **change}) + "\n")
    with pytest.raises(DatasetError) as caught:
        read_grounding(file)
    error = caught.value
    assert (error.path, error.line, error.field) == (file, 3, field)
    assert f"{file}:3" in str(error)
    assert CANARY not in str(error)


@pytest.mark.parametrize(
    "content", [f"{CANARY} {{", f'"{CANARY}"', f'["{CANARY}"]', '{"a":' * 20_000], ids=["torn", "text", "list", "deep"]
)
def test_a_line_that_is_no_object_leaks_nothing(tmp_path: Path, content: str):
    file = tmp_path / "claims.jsonl"
    file.write_text(content)
    with pytest.raises(DatasetError, match="not a JSON object") as caught:
        read_grounding(file)
    assert caught.value.line == 1
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("absent.jsonl", None, "does not exist"),
        ("empty.jsonl", b"", "no lines"),
        ("latin.jsonl", '{"claim": "caf\xe9"}'.encode("latin-1"), "not UTF-8"),
        ("plain.jsonl.gz", b"{}", "whole gzip"),
        ("cut.jsonl.gz", gzip.compress(b"x" * 10_000, mtime=0)[:30], "whole gzip"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name: str, content: bytes | None, problem: str):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DatasetError, match=problem):
        read_grounding(file)


def write_retrieval(folder: Path, qrels: str, corpus: str = '{"_id": "d", "text": "t"}') -> Path:
    (folder / "corpus.jsonl").write_text(corpus)
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "t"}')
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(qrels)
    return folder


@pytest.mark.parametrize(
    ("qrels", "field"),
    [
        ("q\td\n", None),
        ("x\td\t1\n", "query-id"),
        ("q\tx\t1\n", "corpus-id"),
        ("q\td\thigh\n", "score"),
        ("q\td\t-1\n", "score"),
    ],
)
def test_a_bad_judgement_is_named(tmp_path: Path, qrels: str, field: str | None):
    with pytest.raises(DatasetError) as caught:
        read_retrieval(write_retrieval(tmp_path, "query-id\tcorpus-id\tscore\n" + qrels))
    assert (caught.value.line, caught.value.field) == (2, field)


def test_a_set_without_relevant_documents_is_refused(tmp_path: Path):
    with pytest.raises(DatasetError, match="no query"):
        read_retrieval(write_retrieval(tmp_path, "q\td\t0\n"))


def test_a_document_id_must_be_unique(tmp_path: Path):
    doubled = '{"_id": "d", "text": "t"}\n{"_id": "d", "text": "u"}'
    with pytest.raises(DatasetError, match="twice"):
        read_retrieval(write_retrieval(tmp_path, "q\td\t1\n", doubled))


def test_a_folder_without_a_corpus_is_refused(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"corpus\.jsonl"):
        read_retrieval(tmp_path)
