"""What the first results tell of a question, and what the reranker reads in them."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanforge.reference import DataSource, Document, Pipeline, User, Visibility
from spanforge.reference.embedding.nearness import nearest
from spanforge.reference.index import Candidate, IndexRow
from spanforge.reference.retrieving.feedback import by_feedback, centred
from spanforge.reference.retrieving.fusion import fuse
from spanforge.reference.retrieving.reranking import LexicalReranker, Reading
from spanforge.reference.retrieving.understanding import process_query

WORDS = ("heron", "fish", "pond", "owl", "mouse", "night")
TERMS = st.lists(st.sampled_from(WORDS), max_size=12)


def candidate(name: str, terms: list[str], bm25: float | None = 1.0, vector: list[float] | None = None) -> Candidate:
    unit = None if vector is None else np.array(vector, dtype=np.float32) / np.float32(np.linalg.norm(vector))
    cosine = None if unit is None else float(unit[0])
    return Candidate(IndexRow(name, "org", "s", name, " ".join(terms), vector=unit), tuple(terms), bm25, cosine)


def test_words_of_the_first_results_lift_what_shares_them() -> None:
    passages = [["heron", "fish", "pond"], ["fish", "pond"], ["owl", "mouse"]]
    scores = by_feedback([candidate(str(i), terms) for i, terms in enumerate(passages)], [1.0, 0.0, 0.0])
    assert scores[1] > scores[2] == 0.0


@given(
    passages=st.lists(TERMS, min_size=1, max_size=8) | st.lists(TERMS, min_size=20, max_size=24), seed=st.integers(0, 9)
)
def test_fused_scores_stay_in_their_range_and_follow_their_passage(passages: list[list[str]], seed: int) -> None:
    generator = random.Random(seed)  # noqa: S311 - a repeatable draw, nothing secret
    found = [
        candidate(str(i), terms, generator.choice([None, generator.random()]), [generator.random() + 0.1, 1.0, 0.3 * i])
        for i, terms in enumerate(passages)
    ]
    scores = fuse(found, method="weighted", dense_weight=0.3)
    assert len(scores) == len(found)
    assert all(-1e-9 <= score <= 1.0 + 1e-9 for score in scores)
    assert fuse(found, method="weighted", dense_weight=0.3) == scores


def test_two_that_are_nearly_alike_stay_near_each_other() -> None:
    vectors = [[0.9, 0.1, 0.0], [0.9, 0.12, 0.0]]
    found = [candidate(str(i), ["fish", str(i)], 1.0, vector) for i, vector in enumerate(vectors)]
    one, other = fuse(found, method="weighted", dense_weight=0.3)
    assert abs(one - other) < 0.05


def test_centred_cosines_are_those_of_what_is_left_without_the_mean() -> None:
    found = [
        candidate("a", [], None, [1, 2, 0]),
        candidate("b", [], None, [2, 0, 1]),
        candidate("c", [], None, [1, 1, 1]),
    ]
    matrix = np.stack([one.row.vector for one in found if one.row.vector is not None]).astype(float)
    mean, question = matrix.mean(axis=0), np.array([1.0, 0.0, 0.0])
    left, asked = matrix - mean, question - mean
    expected = (left @ asked) / np.linalg.norm(left, axis=1) / np.linalg.norm(asked)
    assert centred(found) == pytest.approx(expected.tolist(), abs=1e-6)


def test_without_all_vectors_cosines_stay_as_they_are() -> None:
    known, unknown = candidate("a", [], None, [1.0, 2.0]), candidate("b", ["owl"])
    assert centred([known, unknown]) == [known.cosine, None]
    alone = replace(known, row=replace(known.row, vector=None))
    assert centred([alone]) == [alone.cosine]


def test_the_nearest_word_of_each_text_counts_and_a_text_without_words_has_none() -> None:
    asked, known = np.eye(2), np.array([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]])
    assert nearest(asked, known, [[0, 1], [2], []]) == pytest.approx(np.array([[1.0, 0.8], [0.0, 0.0], [0.0, 0.0]]))


def test_a_word_of_like_meaning_and_neighbours_lift_a_passage() -> None:
    query = process_query("medicine against heat stroke")
    texts = ["The drug helps.", "The bridge helps.", "A heat stroke passes.", "A stroke of the pen, in summer heat."]
    readings = [Reading(text, process_query(text).terms, 0.5) for text in texts]
    drug, bridge, together, apart = LexicalReranker().rerank(query, readings)
    assert drug > bridge
    assert together > apart


def test_what_is_not_read_stays_below_and_in_its_order() -> None:
    query = process_query("how do owls hunt mice")
    readings = [Reading("Owls hunt mice.", query.terms, 1.0 - i / 100) for i in range(40)]
    scores = LexicalReranker().rerank(query, readings)
    assert scores == sorted(scores, reverse=True)
    assert min(scores[: LexicalReranker.depth]) > scores[LexicalReranker.depth]
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_nothing_read_has_no_scores() -> None:
    assert LexicalReranker().rerank(process_query("Which heron fishes?"), []) == []


def test_no_figure_depends_on_passages_that_may_not_be_read(pipeline: Pipeline) -> None:
    birds = ["Herons fish in the pond.", "A pond holds fish and frogs.", "Owls hunt mice.", "Frogs hide in reeds."]
    birds += [f"Pond {number} has fish, reeds and a heron." for number in range(20)]
    pipeline.ingest([Document(document_id=f"d{i}", text=text) for i, text in enumerate(birds)], "birds")
    reader = User(user_id="reader")
    before = pipeline.retrieve("What do herons fish?", user=reader)
    hidden = [Document(document_id=f"h{i}", text="Herons fish; herons steal mice from owls.") for i in range(3)]
    pipeline.put_source(DataSource(data_source_id="secret", visibility=Visibility.PERSONAL))
    pipeline.ingest(hidden, "secret")
    after = pipeline.retrieve("What do herons fish?", user=reader)
    assert [(one.chunk_id, one.score) for one in after.documents] == [
        (one.chunk_id, one.score) for one in before.documents
    ]
