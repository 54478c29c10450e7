"""Sub-contract 1, line by line, over every engine."""

from __future__ import annotations

from itertools import pairwise

import pytest

from spanforge.reference import DataSource, Document, Pipeline, User, Visibility
from spanforge.reference.failures import EmbeddingFailed, InvalidInput, PermissionDenied
from spanforge.reference.index import MemoryIndex, Selection
from spanforge.reference.models import IngestionInput, IngestionOutput, JobStatus

TWO = [
    Document(document_id="tides", text="# Tides\n\nThe Moon causes tides.", name="tides.md"),
    Document(document_id="salt", text="# Salt\n\nSea water is salty.", name="salt.md"),
]
LONG = "\n\n".join(f"Paragraph {i} speaks of barges, locks and canals number {i}." for i in range(200))


def chunks(pipeline: Pipeline, source: str = "s") -> int:
    return pipeline.index.count(Selection("local", (source,)))


# --- inputs ---


def test_input_documents_and_data_source_id(pipeline: Pipeline) -> None:
    job = pipeline.ingest(TWO, "s")
    assert (job.status, job.indexed, job.data_source_id) == (JobStatus.COMPLETED, 2, "s")


def test_input_names_follow_the_contract_in_camel_case() -> None:
    request = IngestionInput.model_validate({"documents": [], "dataSourceId": "s"})
    assert (request.chunk_size, request.chunk_overlap, request.embedding_model) == (512, 50, None)
    assert set(request.model_dump(by_alias=True)) == {
        "documents", "dataSourceId", "chunkSize", "chunkOverlap", "embeddingModel",
    }  # fmt: skip


def test_input_chunk_size_bounds_every_chunk(pipeline: Pipeline) -> None:
    pipeline.ingest(Document(document_id="long", text=LONG), "s", chunk_size=64, chunk_overlap=0)
    found = pipeline.retrieve("barges locks canals", top_k=50).documents
    assert len(found) > 5
    assert all(0 < document.tokens <= 64 for document in found)


def test_input_chunk_overlap_repeats_the_end_of_the_chunk_before(pipeline: Pipeline) -> None:
    pipeline.ingest(Document(document_id="long", text=LONG), "s", chunk_size=64, chunk_overlap=24)
    found = sorted(pipeline.retrieve("barges locks canals", top_k=500).documents, key=lambda d: d.start)
    assert any(right.start < left.end for left, right in pairwise(found))


@pytest.mark.parametrize(("size", "overlap"), [(64, 64), (64, 65), (64, -1)])
def test_input_overlap_must_be_less_than_the_size(size: int, overlap: int) -> None:
    with pytest.raises(InvalidInput):
        Pipeline(embedder=None).ingest(TWO, "s", chunk_size=size, chunk_overlap=overlap)


def test_input_embedding_model_is_the_pipelines_and_unknown_ones_are_refused() -> None:
    assert Pipeline(embedder="wordllama").modes["embedder"] == "wordllama"
    with pytest.raises(InvalidInput):
        Pipeline(embedder="no-such-engine")
    with pytest.raises(EmbeddingFailed):
        Pipeline(embedder="onnx:/nowhere/at/all")


# --- outputs ---


def test_output_names_follow_the_contract_in_camel_case(pipeline: Pipeline) -> None:
    out = pipeline.ingest(TWO, "s").model_dump(by_alias=True)
    assert {"jobId", "indexed", "chunks", "vectorIds", "status"} <= set(out)


def test_output_chunks_and_vector_ids_are_what_the_index_holds(pipeline: Pipeline) -> None:
    job = pipeline.ingest(TWO, "s")
    assert job.chunks == chunks(pipeline) == len(job.vector_ids)
    found = {document.chunk_id for document in pipeline.retrieve("tides salty water").documents}
    assert found <= set(job.vector_ids)


def test_output_status_passes_through_queued_and_processing(pipeline: Pipeline) -> None:
    seen: list[JobStatus] = []
    queued = pipeline.ingest(TWO, "s", background=True)
    assert queued.status is JobStatus.QUEUED
    pipeline.jobs.wait(queued.job_id, 30)
    pipeline.ingest(TWO, "s2", report=lambda state: seen.append(state.status))
    assert set(seen) == {JobStatus.PROCESSING}
    assert {status.value for status in JobStatus} == {"queued", "processing", "completed", "failed"}


# --- guarantees ---


def test_guarantee_documents_are_chunked_consistently(pipeline: Pipeline) -> None:
    first = pipeline.ingest(Document(document_id="long", text=LONG), "a", chunk_size=64, chunk_overlap=8)
    pipeline.delete("a")
    second = pipeline.ingest(Document(document_id="long", text=LONG), "a", chunk_size=64, chunk_overlap=8)
    assert first.vector_ids == second.vector_ids


def test_guarantee_an_unchanged_document_costs_nothing_and_a_changed_one_replaces_its_chunks(
    pipeline: Pipeline,
) -> None:
    pipeline.ingest(TWO, "s")
    version = pipeline.index.version
    again = pipeline.ingest(TWO, "s")
    assert (again.unchanged, again.vector_ids, pipeline.index.version) == (2, [], version)
    changed = pipeline.ingest([Document(document_id="tides", text="Tides come twice a day.", name="tides.md")], "s")
    assert changed.unchanged == 0
    assert chunks(pipeline) == 2
    texts = {document.text for document in pipeline.retrieve("tides moon").documents}
    assert not any("Moon" in text for text in texts)


def test_guarantee_embeddings_are_generated_for_all_chunks(pipeline: Pipeline) -> None:
    pipeline.ingest(Document(document_id="long", text=LONG), "s", chunk_size=64, chunk_overlap=0)
    assert pipeline.embedder is not None
    vector = pipeline.embedder.embed(["barges and locks"])[0]
    from spanforge.reference.index import SearchRequest

    hits = pipeline.index.search(SearchRequest("", vector, 1000, Selection("local", ("s",))))
    assert len(hits.candidates) == chunks(pipeline)
    assert all(candidate.cosine is not None and abs(candidate.cosine) > 0 for candidate in hits.candidates)


def test_guarantee_metadata_is_preserved(pipeline: Pipeline) -> None:
    document = Document(
        document_id="d", text="# Locks\n\nA lock lifts a barge.", name="guide.md", quality=0.9, metadata={"lang": "en"}
    )
    pipeline.ingest(document, "s")
    [found] = pipeline.retrieve("how does a lock lift a barge").documents
    assert (found.source, found.document_id, found.data_source_id) == ("guide.md", "d", "s")
    assert (found.quality, found.metadata, found.heading) == (0.9, {"lang": "en"}, "Locks")
    assert document.text is not None
    assert document.text[found.start : found.end] == found.text


def test_guarantee_organisations_are_isolated(pipeline: Pipeline) -> None:
    ann, bob = User(user_id="ann", org_id="north"), User(user_id="bob", org_id="south")
    pipeline.ingest(TWO, "shared-name", user=ann)
    pipeline.ingest(Document(document_id="tides", text="Southern tides differ."), "shared-name", user=bob)
    assert {d.text for d in pipeline.retrieve("tides", user=bob).documents} == {"Southern tides differ."}
    assert pipeline.index.count(Selection("north")) == 2


def test_guarantee_a_job_can_be_tracked_by_who_started_it(pipeline: Pipeline) -> None:
    job = pipeline.ingest(TWO, "s", background=True)
    pipeline.jobs.wait(job.job_id, 30)
    tracked = pipeline.jobs.get(job.job_id, User())
    assert isinstance(tracked, IngestionOutput)
    assert (tracked.status, tracked.progress) == (JobStatus.COMPLETED, 1.0)
    for stranger in (User(user_id="eve"), User(org_id="else")):
        with pytest.raises(InvalidInput):
            pipeline.jobs.get(job.job_id, stranger)


# --- failures: of one document, the rest untouched ---


def failure_code(pipeline: Pipeline, bad: Document) -> str:
    job = pipeline.ingest([TWO[0], bad, TWO[1]], "s")
    assert job.indexed == 2
    assert job.status is JobStatus.COMPLETED
    [failure] = job.failures
    assert failure.document_id == bad.document_id
    return failure.code


def test_failure_parse_error(pipeline: Pipeline) -> None:
    assert (
        failure_code(pipeline, Document(document_id="bad", content=b"%PDF-1.7 truncated", name="x.pdf"))
        == "PARSE_ERROR"
    )


def test_failure_unsupported_format(pipeline: Pipeline) -> None:
    assert failure_code(pipeline, Document(document_id="bad", content=b"\x89PNG", name="x.png")) == "UNSUPPORTED_FORMAT"


class FlakyEmbedder:
    """The bundled embedder, out of order for texts that say so."""

    name, dimensions, dense_weight = "flaky", 256, 0.3

    def embed(self, texts):  # type: ignore[no-untyped-def]
        from spanforge.reference.embedding import open_embedder

        if any("out of order" in text for text in texts):
            raise EmbeddingFailed
        return open_embedder("wordllama").embed(texts)


def test_failure_embedding_failed() -> None:
    pipeline = Pipeline(embedder=FlakyEmbedder())
    assert failure_code(pipeline, Document(document_id="bad", text="out of order")) == "EMBEDDING_FAILED"


def test_failure_index_full() -> None:
    pipeline = Pipeline(index=MemoryIndex(max_rows=1))
    job = pipeline.ingest(TWO, "s")
    assert (job.status, job.reason, job.indexed) == (JobStatus.FAILED, "INDEX_FULL", 0)
    assert chunks(pipeline) == 0


def test_where_nothing_fits_nothing_is_embedded() -> None:
    class Never(FlakyEmbedder):
        def embed(self, texts):  # type: ignore[no-untyped-def]
            raise AssertionError("there was no room for it")

    index = MemoryIndex(max_rows=2)
    assert Pipeline(index=index, embedder=FlakyEmbedder(), max_chunks=2).ingest(TWO, "s").reason is None
    job = Pipeline(index=index, embedder=Never(), max_chunks=2).ingest(Document(document_id="c", text="More."), "s")
    assert (job.status, job.reason) == (JobStatus.FAILED, "INDEX_FULL")


def test_failure_permission_denied(pipeline: Pipeline) -> None:
    owner, editor, other = User(user_id="owner"), User(user_id="editor"), User(user_id="other")
    source = DataSource(
        data_source_id="s", owner_id="owner", editors=frozenset({"editor"}), visibility=Visibility.PUBLIC
    )
    pipeline.put_source(source, owner)
    pipeline.ingest(TWO, "s", user=editor)
    for attempt in (
        lambda: pipeline.ingest(TWO, "s", user=other),
        lambda: pipeline.delete("s", user=other),
        lambda: pipeline.put_source(source.model_copy(update={"owner_id": "other"}), other),
    ):
        with pytest.raises(PermissionDenied):
            attempt()
    assert chunks(pipeline) == 2
