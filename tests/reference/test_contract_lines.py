"""The contract, line by line, and the tests that bear the name of each line.

A field is tested where a test of its stage names it, a guarantee by the test that stands beside it here. A test of a
stage lies in that stage's file, or has the stage at the head of its name. What counts runs over every engine: it
takes a fixture that opens one.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from reference.conftest import ENGINES, PIPELINE_ENGINES

FIELDS = {
    ("ingestion", "input"): ["documents", "data_source_id", "chunk_size", "chunk_overlap", "embedding_model"],
    ("ingestion", "output"): ["job_id", "indexed", "chunks", "vector_ids", "status"],
    ("retrieval", "input"): ["query", "data_sources", "top_k", "filters", "rerank", "rerank_model"],
    ("retrieval", "output"): ["documents", "scores", "total_found", "data_sources"],
    ("assembly", "input"): ["query", "documents", "max_tokens", "template"],
    ("assembly", "output"): ["prompt", "included_docs", "token_count", "citations"],
    ("grounding", "input"): ["query", "documents", "prompt", "strict_mode"],
    ("grounding", "output"): ["is_groundable", "grounding_score", "relevant_docs", "gaps"],
    ("answering", "input"): ["prompt", "grounded_docs", "citations", "model", "temperature", "stream"],
    ("answering", "output"): ["answer", "citations_used", "confidence"],
}
GUARANTEES = {
    "ingestion": [
        "documents_are_chunked_consistently",
        "embeddings_are_generated_for_all_chunks",
        "metadata_is_preserved",
        "users_are_isolated",
        "organisations_are_isolated",
        "a_job_can_be_tracked_by_who_started_it",
    ],
    "retrieval": [
        "results_are_ordered_by_relevance",
        "only_accessible_sources_are_queried",
        "at_most_top_k",
        "reranking_improves_precision_over_embedding_similarity",
    ],
    "assembly": [
        "the_prompt_fits_or_overflows",
        "most_relevant_documents_first",
        "citations_map_to_source_documents",
        "context_and_query_are_clearly_separated",
    ],
    "grounding": [
        "checks_if_the_query_is_answerable",
        "filters_out_irrelevant_documents",
        "strict_mode_rejects_with_insufficient_context",
    ],
    "answering": [
        "the_answer_is_based_on_grounded_context_only",
        "citations_are_included_and_nothing_is_made_up",
        "streaming_is_supported",
    ],
}


ENGINE_FIXTURES = {"pipeline", "index", "open_engine", "birds", "found"}


def test_the_engines_are_the_embedded_one_and_the_one_for_clusters() -> None:
    pipelines = {getattr(engine, "values", (engine,))[0] for engine in PIPELINE_ENGINES}
    assert pipelines == set(ENGINES) == {"memory", "lancedb", "milvus"}


def names_of(stage: str) -> set[str]:
    """Return the names of a stage's tests that run over every engine, without the stage."""
    found: set[str] = set()
    for file in Path(__file__).parent.glob("test_contract_*.py"):
        own = file.stem == f"test_contract_{stage}"
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or not (own or node.name.startswith(f"test_{stage}_")):
                continue
            if ENGINE_FIXTURES & {argument.arg for argument in node.args.args}:
                found.add(node.name.removeprefix("test_").removeprefix(f"{stage}_"))
    return found


@pytest.mark.parametrize(
    ("stage", "kind", "field"), [(*key, field) for key, fields in FIELDS.items() for field in fields]
)
def test_each_field_has_a_test_that_names_it(stage: str, kind: str, field: str) -> None:
    assert any(name.startswith(f"{kind}_") and f"_{field}_" in f"{name}_" for name in names_of(stage))


@pytest.mark.parametrize(("stage", "line"), [(stage, line) for stage, lines in GUARANTEES.items() for line in lines])
def test_each_guarantee_has_a_test_that_names_it(stage: str, line: str) -> None:
    assert f"guarantee_{line}" in names_of(stage)
