"""Sub-contract 2, line by line, over every engine."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from spanforge.reference import DataSource, Document, Filter, Pipeline, User, Visibility
from spanforge.reference.failures import (
    EmbeddingFailed,
    IndexUnavailable,
    InvalidInput,
    NoAccessibleSources,
    NoResults,
    RerankFailed,
    Stage,
)
from spanforge.reference.index import MemoryIndex
from spanforge.reference.models import RetrievalInput
from spanforge.reference.retrieving.retriever import RetrievalSettings
from spanforge.reference.retrieving.understanding import process_query

FACTS = [
    Document(document_id=f"d{i}", text=text, name=f"{i}.md", timestamp=datetime(2000 + i, 1, 1, tzinfo=UTC))
    for i, text in enumerate(
        [
            "The heron stands still in shallow water and waits for fish.",
            "The kingfisher dives into clear water from a branch.",
            "Owls hunt mice at night by hearing alone.",
            "A woodpecker drums on hollow trees in spring.",
            "Swifts sleep on the wing and rarely land.",
            "Storks nest on chimneys and return every spring.",
        ]
    )
]


@pytest.fixture
def birds(pipeline: Pipeline) -> Pipeline:
    pipeline.ingest(FACTS, "birds")
    return pipeline


# --- inputs ---


def test_input_names_and_defaults_follow_the_contract() -> None:
    request = RetrievalInput.model_validate({"query": "q"})
    assert (request.top_k, request.rerank, request.data_sources, request.filters) == (10, True, None, [])
    assert set(request.model_dump(by_alias=True)) == {
        "query", "dataSources", "topK", "filters", "rerank", "rerankModel",
    }  # fmt: skip


def test_input_query_finds_its_document(birds: Pipeline) -> None:
    assert birds.retrieve("how do owls hunt mice").documents[0].document_id == "d2"


def test_input_data_sources_narrow_the_search(birds: Pipeline) -> None:
    birds.ingest(Document(document_id="x", text="Owls in another source hunt mice."), "more")
    assert {d.data_source_id for d in birds.retrieve("owls hunt mice").documents} == {"birds", "more"}
    only = birds.retrieve("owls hunt mice", data_sources=["more"])
    assert {d.data_source_id for d in only.documents} == {"more"} == set(only.data_sources)


def test_input_filters_apply(birds: Pipeline) -> None:
    late = Filter(field="timestamp", op="ge", value=datetime(2002, 1, 1, tzinfo=UTC))
    found = birds.retrieve("what returns in spring", filters=[late]).documents
    assert found
    assert all(d.timestamp is not None and d.timestamp.year >= 2002 for d in found)


@pytest.mark.parametrize("top_k", [0, -1, 1001])
def test_input_top_k_has_bounds(top_k: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        Pipeline(embedder=None).retrieve("secret words", top_k=top_k)
    assert "top_k" in str(caught.value)
    assert "secret" not in repr(caught.value.__context__)


def test_input_rerank_can_be_left_out(birds: Pipeline) -> None:
    assert birds.retrieve("owls hunt mice", rerank=False).documents[0].document_id == "d2"


# --- outputs ---


def test_output_names_follow_the_contract(birds: Pipeline) -> None:
    out = birds.retrieve("owls").model_dump(by_alias=True)
    assert {"documents", "scores", "totalFound", "dataSources"} <= set(out)


def test_output_scores_match_the_documents_and_keep_the_raw_score(birds: Pipeline) -> None:
    out = birds.retrieve("owls hunt mice at night")
    assert out.scores == [d.score for d in out.documents]
    assert all(0.0 <= score <= 1.0 for score in out.scores)
    assert any(d.raw_score not in out.scores for d in out.documents)


def test_output_total_found_counts_before_top_k(birds: Pipeline) -> None:
    out = birds.retrieve("owls hunt mice in clear water", top_k=1)
    assert len(out.documents) == 1
    assert out.total_found > 1


def test_output_data_sources_are_those_queried(birds: Pipeline) -> None:
    assert birds.retrieve("owls").data_sources == ["birds"]


# --- guarantees ---


@pytest.mark.parametrize("rerank", [True, False])
def test_guarantee_results_are_ordered_by_relevance(birds: Pipeline, rerank: bool) -> None:
    scores = birds.retrieve("spring water trees fish", rerank=rerank).scores
    assert scores == sorted(scores, reverse=True)


def test_guarantee_at_most_top_k(birds: Pipeline) -> None:
    for top_k in (1, 3, 100):
        assert len(birds.retrieve("spring water trees fish", top_k=top_k).documents) <= top_k


def test_guarantee_only_accessible_sources_are_queried(birds: Pipeline) -> None:
    birds.put_source(DataSource(data_source_id="mine", visibility=Visibility.PERSONAL))
    birds.ingest(Document(document_id="diary", text="My owl diary: owls hunt mice."), "mine")
    other = birds.retrieve("owl diary", user=User(user_id="other"))
    assert other.data_sources == ["birds"]
    assert all(d.data_source_id == "birds" for d in other.documents)
    asked = birds.retrieve("owl hunt", user=User(user_id="other"), data_sources=["birds", "mine"])
    assert asked.data_sources == ["birds"]


def test_guarantee_every_engine_ranks_alike(birds: Pipeline) -> None:
    exact = Pipeline(index=MemoryIndex())
    exact.ingest(FACTS, "birds")
    for query in ("owls hunt mice at night", "who dives into clear water", "drums on trees in spring"):
        left, right = birds.retrieve(query).documents, exact.retrieve(query).documents
        assert left[0].document_id == right[0].document_id


def test_guarantee_fusion_by_ranks_is_offered(birds: Pipeline) -> None:
    ranked = Pipeline(index=birds.index, retrieval=RetrievalSettings(fusion="rrf"))
    ranked.put_source(DataSource(data_source_id="birds"))
    out = ranked.retrieve("owls hunt mice at night", rerank=False)
    assert out.documents[0].document_id == "d2"
    assert 0.0 < out.scores[0] <= 1.0


# --- failures ---


@pytest.mark.parametrize("query", ["", "   ", "the", "of the and", "quantum chromodynamics lattice", "\x00", "?!"])
def test_failure_no_results_is_decided_on_an_absolute_measure(birds: Pipeline, query: str) -> None:
    with pytest.raises(NoResults):
        birds.retrieve(query)


def test_failure_no_accessible_sources(birds: Pipeline) -> None:
    with pytest.raises(NoAccessibleSources):
        birds.retrieve("owls", user=User(org_id="elsewhere"))
    with pytest.raises(NoAccessibleSources):
        birds.retrieve("owls", data_sources=["unknown"])


class BrokenIndex(MemoryIndex):
    """An index whose store has gone away."""

    def search(self, _request):  # type: ignore[no-untyped-def]
        raise IndexUnavailable


def test_failure_index_unavailable() -> None:
    pipeline = Pipeline(index=BrokenIndex())
    pipeline.ingest(FACTS, "birds")
    with pytest.raises(IndexUnavailable) as caught:
        pipeline.ask("owls")
    assert caught.value.retryable


class QueryBlindEmbedder:
    """Embeds documents, and fails on questions."""

    name, dimensions, dense_weight = "blind", 4, 0.3

    def embed(self, texts):  # type: ignore[no-untyped-def]
        if any("?" in text for text in texts):
            raise EmbeddingFailed
        return np.ones((len(texts), 4), dtype=np.float32) / 2


def test_failure_embedding_failed_at_retrieval() -> None:
    pipeline = Pipeline(embedder=QueryBlindEmbedder())
    pipeline.ingest(FACTS, "birds")
    with pytest.raises(EmbeddingFailed) as caught:
        pipeline.retrieve("owls?")
    assert caught.value.stage is Stage.RETRIEVAL


class BrokenReranker:
    name = "broken"

    def rerank(self, _query, _readings):  # type: ignore[no-untyped-def]
        raise RerankFailed


class WildReranker:
    name = "wild"

    def rerank(self, _query, readings):  # type: ignore[no-untyped-def]
        return [17.0 for _ in readings]


@pytest.mark.parametrize("reranker", [BrokenReranker(), WildReranker()])
def test_failure_rerank_failed_falls_back_to_the_unreranked_order_marked_partial(reranker: BrokenReranker) -> None:
    pipeline = Pipeline(reranker=reranker)
    pipeline.ingest(FACTS, "birds")
    plain = pipeline.retrieve("owls hunt mice", rerank=False)
    out = pipeline.retrieve("owls hunt mice")
    assert (out.status, out.warnings) == ("partial", ["RERANK_FAILED"])
    assert [d.chunk_id for d in out.documents] == [d.chunk_id for d in plain.documents]
    assert "RERANK_FAILED" in pipeline.ask("How do owls hunt mice?").warnings


def test_without_an_embedder_the_lesser_mode_is_announced() -> None:
    pipeline = Pipeline(embedder=None)
    pipeline.ingest(FACTS, "birds")
    out = pipeline.retrieve("owls hunt mice")
    assert (out.status, out.warnings) == ("partial", ["LEXICAL_ONLY"])
    assert pipeline.modes["embedder"] == "none: by words alone"


@pytest.mark.parametrize(
    "around",
    [
        "Hello, I hope you are well today! I was reading a lot about harbours lately. {} Thank you so much in advance!",
        "Could you please tell me, if it is no trouble at all: {}",
        "Hi! {} I need it for a presentation next week, which my manager asked me to prepare with care, so hurry.",
    ],
)
@pytest.mark.parametrize("embedder", ["auto", None])
def test_a_long_polite_question_finds_and_answers_what_the_short_one_does(around: str, embedder: str | None) -> None:
    question = "When does the ferry to Marstal leave?"
    with Pipeline(embedder=embedder) as pipeline:
        texts = ["The ferry to Marstal leaves at 09:45.", "The office opens at nine.", "Fares are paid on board."]
        pipeline.ingest([Document(document_id=f"d{n}", text=text) for n, text in enumerate(texts)])
        short, long = pipeline.ask(question), pipeline.ask(around.format(question))
        assert long.answer == short.answer == "09:45 [1]"
        assert [one.chunk_id for one in long.documents] == [one.chunk_id for one in short.documents]


def test_what_a_long_question_leans_on_stays_in_it() -> None:
    said = "We keep a brass bolt of the size M8 on the upper shelf of the store in Lund. What does it cost there?"
    assert process_query(said).expanded_query == said
