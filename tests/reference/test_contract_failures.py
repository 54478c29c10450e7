"""Every failure code of the contract, provoked in a pipeline over each engine.

The table at the end gives each code its scenario; a code without one fails.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from reference.conftest import OpenEngine
from reference.test_contract_grounding import BrokenGrounder, Unconvinced
from reference.test_contract_ingestion import FlakyEmbedder
from reference.test_contract_retrieval import BrokenReranker
from support.chat_server import chat_server

from spanforge.reference import DataSource, Document, Pipeline, User
from spanforge.reference.answering.openai import OpenAIAnswerer
from spanforge.reference.asking.recovery import RecoverySettings
from spanforge.reference.failures import InvalidInput, RagFailure, failure_codes

QUESTION = "When was the lighthouse at Cape Wrath built?"
LIGHT = Document(document_id="light", text="The lighthouse at Cape Wrath was built in 1828.", name="light.md")
UNKNOWN = "quantum chromodynamics lattice"

CONTRACT = {
    "ingestion": {"PARSE_ERROR", "EMBEDDING_FAILED", "INDEX_FULL", "UNSUPPORTED_FORMAT", "PERMISSION_DENIED"},
    "retrieval": {"NO_RESULTS", "INDEX_UNAVAILABLE", "EMBEDDING_FAILED", "RERANK_FAILED", "NO_ACCESSIBLE_SOURCES"},
    "context_assembly": {"CONTEXT_OVERFLOW", "TEMPLATE_ERROR"},
    "grounding": {"GROUNDING_FAILED", "INSUFFICIENT_CONTEXT", "NOT_GROUNDED"},
    "answering": {"GENERATION_FAILED", "CONTEXT_IGNORED"},
}


@dataclass(frozen=True, slots=True)
class Stand:
    """What a scenario works with: an empty pipeline over the engine, and how to make another."""

    pipeline: Pipeline
    open_engine: OpenEngine
    folder: Path

    def holding(self, **settings: Any) -> Pipeline:
        """Return a pipeline over an index of its own that holds the one document."""
        pipeline = Pipeline(index=self.open_engine(256), **settings)
        pipeline.ingest(LIGHT, "s")
        return pipeline


Scenario = Callable[[Stand], "str | None"]


def raised(call: Callable[[], object]) -> str:
    """Return the code of the failure that a call raises, which must not quote what it was given."""
    with pytest.raises(RagFailure) as caught:
        call()
    assert "lighthouse" not in f"{caught.value!s} {caught.value.__context__!r} {caught.value.__cause__!r}"
    return caught.value.code


def of_a_document(pipeline: Pipeline, bad: Document) -> str:
    job = pipeline.ingest([LIGHT, bad], "s")
    assert job.indexed == 1
    [failure] = job.failures
    assert failure.document_id == bad.document_id
    return failure.code


def parse_error(stand: Stand) -> str:
    return of_a_document(stand.pipeline, Document(document_id="bad", content=b"%PDF-1.7 cut", name="x.pdf"))


def unsupported_format(stand: Stand) -> str:
    return of_a_document(stand.pipeline, Document(document_id="bad", content=b"\x89PNG", name="x.png"))


def embedding_failed(stand: Stand) -> str:
    pipeline = stand.holding(embedder=FlakyEmbedder())
    assert raised(lambda: pipeline.retrieve("What is out of order?")) == "EMBEDDING_FAILED"
    return of_a_document(pipeline, Document(document_id="bad", text="out of order"))


def index_full(stand: Stand) -> str | None:
    pipeline = Pipeline(index=stand.open_engine(256, max_rows=1))
    return pipeline.ingest([LIGHT, Document(document_id="more", text="One too many.")], "s").reason


def permission_denied(stand: Stand) -> str:
    stand.pipeline.put_source(DataSource(data_source_id="s", owner_id="owner"), User(user_id="owner"))
    other = User(user_id="other")
    assert raised(lambda: stand.pipeline.delete("s", user=other)) == "PERMISSION_DENIED"
    return raised(lambda: stand.pipeline.ingest(LIGHT, "s", user=other))


def no_results(stand: Stand) -> str | None:
    pipeline = stand.holding()
    assert raised(lambda: pipeline.retrieve(UNKNOWN)) == "NO_RESULTS"
    return pipeline.ask(UNKNOWN).failure


def index_unavailable(stand: Stand) -> str:
    pipeline = stand.holding()
    if pipeline.index.name == "lancedb":
        for table in stand.folder.rglob("*.lance"):
            shutil.rmtree(table)
    else:  # the others have no files of their own to lose, but the catalogue beside them can go
        pipeline.catalog.close()
    return raised(lambda: pipeline.ask(QUESTION))


def rerank_failed(stand: Stand) -> str:
    out = stand.holding(reranker=BrokenReranker()).retrieve(QUESTION)
    assert (out.status, len(out.documents)) == ("partial", 1)
    [warning] = out.warnings
    return warning


def no_accessible_sources(stand: Stand) -> str:
    pipeline = stand.holding()
    return raised(lambda: pipeline.ask(QUESTION, user=User(org_id="elsewhere")))


def context_overflow(stand: Stand) -> str:
    pipeline = stand.holding()
    return raised(lambda: pipeline.ask(QUESTION, max_tokens=10))


def template_error(stand: Stand) -> str:
    pipeline = stand.holding()
    return raised(lambda: pipeline.ask(QUESTION, template="{context} without a question"))


def grounding_failed(stand: Stand) -> str:
    pipeline = stand.holding(grounder=BrokenGrounder())
    assert "GROUNDING_FAILED" in pipeline.ask(QUESTION).warnings
    return raised(lambda: pipeline.ask(QUESTION, strict=True))


def insufficient_context(stand: Stand) -> str | None:
    return stand.holding().ask("Does a zeppelin lift a lighthouse?", strict=True).failure


def not_grounded(stand: Stand) -> str | None:
    pipeline = stand.holding(grounder=Unconvinced())
    assert "NOT_GROUNDED" in pipeline.ask(QUESTION).warnings
    return pipeline.ask(QUESTION, strict=True).failure


def with_a_model(stand: Stand, reply: str | int, outcome: Callable[[Pipeline], str | None]) -> str | None:
    with chat_server(lambda _: reply) as server:
        answerer = OpenAIAnswerer("m", base_url=f"{server.url}/v1", api_key="key", max_retries=0)
        pipeline = stand.holding(answerer=answerer, recovery=RecoverySettings())
        try:
            return outcome(pipeline)
        finally:
            answerer.close()


def generation_failed(stand: Stand) -> str | None:
    return with_a_model(stand, 500, lambda pipeline: raised(partial(pipeline.ask, QUESTION)))


def context_ignored(stand: Stand) -> str | None:
    def warning(pipeline: Pipeline) -> str | None:
        return next((code for code in pipeline.ask(QUESTION).warnings if code == "CONTEXT_IGNORED"), None)

    return with_a_model(stand, "It was built in 1828.", warning)


SCENARIOS: dict[str, Scenario] = {
    "PARSE_ERROR": parse_error,
    "UNSUPPORTED_FORMAT": unsupported_format,
    "EMBEDDING_FAILED": embedding_failed,
    "INDEX_FULL": index_full,
    "PERMISSION_DENIED": permission_denied,
    "NO_RESULTS": no_results,
    "INDEX_UNAVAILABLE": index_unavailable,
    "RERANK_FAILED": rerank_failed,
    "NO_ACCESSIBLE_SOURCES": no_accessible_sources,
    "CONTEXT_OVERFLOW": context_overflow,
    "TEMPLATE_ERROR": template_error,
    "GROUNDING_FAILED": grounding_failed,
    "INSUFFICIENT_CONTEXT": insufficient_context,
    "NOT_GROUNDED": not_grounded,
    "GENERATION_FAILED": generation_failed,
    "CONTEXT_IGNORED": context_ignored,
}


def test_each_code_of_the_contract_has_a_class_and_a_scenario() -> None:
    codes = set().union(*CONTRACT.values())
    assert set(SCENARIOS) == codes
    assert set(failure_codes()) == {*codes, InvalidInput.code}


@pytest.mark.parametrize(
    ("stage", "code"), [(stage, code) for stage, codes in CONTRACT.items() for code in sorted(codes)]
)
def test_each_code_belongs_to_its_stage(stage: str, code: str) -> None:
    assert failure_codes()[code].default_stage.value == stage or code == "EMBEDDING_FAILED"


@pytest.mark.parametrize("code", sorted(failure_codes().keys() - {InvalidInput.code}))
def test_failure(code: str, pipeline: Pipeline, open_engine: OpenEngine, tmp_path: Path) -> None:
    assert SCENARIOS[code](Stand(pipeline, open_engine, tmp_path)) == code
