"""The library says no where it cannot do as it is told: what narrows access is never ignored."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any

import pytest

from spanforge.reference import DataSource, Document, Pipeline, User
from spanforge.reference.failures import InvalidInput, PermissionDenied
from spanforge.reference.models import JobStatus, Visibility
from spanforge.testing import capture

if TYPE_CHECKING:
    from pathlib import Path

ANN, BOB = User(user_id="ann"), User(user_id="bob")
SLUICE = Document(document_id="d", text="The sluice opens at six.")


@pytest.fixture
def pipeline() -> Any:
    with Pipeline(embedder=None) as opened:
        opened.ingest(SLUICE, "desk", user=ANN)
        yield opened


@pytest.mark.parametrize("option", ["as_user", "topk", "use", "sources", "strictMode", "query_filter"])
@pytest.mark.parametrize("method", ["retrieve", "ask", "stream", "aask", "astream"])
async def test_an_unknown_keyword_is_refused_when_it_is_given(pipeline: Pipeline, method: str, option: str) -> None:
    async def ask() -> None:
        asked = getattr(pipeline, method)("When does the sluice open?", **{option: BOB})
        if method == "aask":
            await asked

    with pytest.raises(TypeError, match=option):
        await ask()


@pytest.mark.parametrize("user", [None, "bob", {"user_id": "bob"}])
def test_a_user_is_a_user(pipeline: Pipeline, user: Any) -> None:
    with pytest.raises(TypeError, match="user"):
        pipeline.ask("When does the sluice open?", user=user)


def test_the_contracts_own_names_are_taken(pipeline: Pipeline) -> None:
    reranker = pipeline.modes["reranker"]
    assert pipeline.retrieve("sluice", rerank_model=reranker).documents
    with pytest.raises(InvalidInput, match="rerank_model"):
        pipeline.retrieve("sluice", rerank_model="another")
    pipeline.ask("When does the sluice open?", strict_mode=True)
    with pytest.raises(TypeError, match="strict"):
        pipeline.ask("When does the sluice open?", strict_mode=True, strict=False)
    with pytest.raises(InvalidInput, match="embedding_model"):
        pipeline.ingest(SLUICE, "desk", user=ANN, embedding_model="another")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"top_k": "many"}, r"top_k: .*1 to 1000.*a text was given"),
        ({"top_k": 0}, r"top_k: .*1 to 1000.*a whole number was given"),
        ({"temperature": 3.5}, r"temperature: .*0.0 to 2.0.*a number was given"),
        ({"max_tokens": None}, r"max_tokens: .*nothing was given"),
        ({"data_sources": "desk"}, r"data_sources: .*a text was given"),
    ],
)
def test_what_is_wrong_names_field_range_and_type(pipeline: Pipeline, options: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        pipeline.ask("When does the sluice open?", **options)


def test_only_the_owner_gives_a_source_away(pipeline: Pipeline) -> None:
    desk = DataSource(data_source_id="desk", owner_id="ann", editors=frozenset({"bob"}))
    pipeline.put_source(desk, ANN)
    pipeline.put_source(desk.model_copy(update={"visibility": Visibility.PRIVATE}), BOB)
    with pytest.raises(PermissionDenied):
        pipeline.put_source(desk.model_copy(update={"owner_id": "bob"}), BOB)
    pipeline.put_source(desk.model_copy(update={"owner_id": "bob"}), ANN)
    assert pipeline.sources(BOB)[0].owner_id == "bob"


@pytest.mark.parametrize(("size", "overlap"), [(64, 33), (512, 508), (16, 9)])
def test_an_overlap_is_at_most_half(pipeline: Pipeline, size: int, overlap: int) -> None:
    with pytest.raises(InvalidInput, match="chunk_overlap"):
        pipeline.ingest(SLUICE, "desk", user=ANN, chunk_size=size, chunk_overlap=overlap)


def test_a_small_passage_needs_no_overlap_said(pipeline: Pipeline) -> None:
    assert pipeline.ingest(SLUICE, "desk", user=ANN, chunk_size=16).status is JobStatus.COMPLETED


def test_a_job_that_indexed_nothing_failed(pipeline: Pipeline) -> None:
    bad = Document(document_id="bad", content=b"\x00\x01\x02" * 50, name="bad.bin")
    alone = pipeline.ingest(bad, "desk", user=ANN)
    assert (alone.status, alone.reason) == (JobStatus.FAILED, alone.failures[0].code)
    assert pipeline.ingest([bad, SLUICE], "desk", user=ANN).status is JobStatus.COMPLETED


def test_a_deleted_source_leaves_no_id_in_any_file_and_files_are_the_owners(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "catalog.sqlite").touch(mode=0o644)
    source = DataSource(data_source_id="quittesource", owner_id="quitteowner", teams=frozenset({"quitteteam"}))
    owner = User(user_id="quitteowner")
    with Pipeline(home, embedder=None) as pipeline:
        pipeline.put_source(source, owner)
        pipeline.ingest(Document(document_id="quittedocument", text="The sluice."), "quittesource", user=owner)
        pipeline.delete("quittesource", user=owner)
        files = [file for file in home.rglob("*") if file.is_file()]
        assert not [file for file in files if b"quitte" in file.read_bytes()]
    assert stat.S_IMODE((home / "catalog.sqlite").stat().st_mode) == 0o600


def test_an_answer_that_strict_mode_withholds_asks_for_a_person(pipeline: Pipeline) -> None:
    with capture() as events:
        result = pipeline.ask("Who painted the sluice gate in spring?", strict_mode=True)
    assert result.failure is not None
    assert "llm.rag.escalated" in {event.event_type for event in events}
