"""Sub-contracts 3 to 5 on what each engine retrieves, and what of 1 and 2 needs a whole pipeline to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.chat_server import chat_server

from spanforge.reference import DataSource, Document, Pipeline, RagResult, RagStatus, User, Visibility
from spanforge.reference.answering import ExtractiveAnswerer
from spanforge.reference.answering.openai import OpenAIAnswerer
from spanforge.reference.asking.assembly import REFUSAL, assemble
from spanforge.reference.asking.grounding_checks import check_answer, check_context
from spanforge.reference.failures import ContextOverflow, InsufficientContext, InvalidInput
from spanforge.reference.index import SearchRequest, Selection
from spanforge.reference.models import (
    AnsweringInput,
    AssemblyInput,
    AssemblyOutput,
    GroundingInput,
    JobStatus,
    RetrievalInput,
    RetrievedDocument,
)
from spanforge.reference.retrieving.reranking import DEFAULT_RERANKER
from spanforge.reference.retrieving.retriever import Retriever
from spanforge.reference.retrieving.understanding import process_query
from spanforge.reference.tokens import default_counter
from spanforge.testing import CapturedEvents

COUNTER = default_counter()
QUESTION = "When was the lighthouse at Cape Wrath built?"
NOTES = [
    Document(document_id="light", text="The lighthouse at Cape Wrath was built in 1828.", name="light.md"),
    Document(document_id="road", text="A road leads to the lighthouse at Cape Wrath.", name="road.md"),
    Document(document_id="cheese", text="Gouda is a cheese that ripens for months.", name="cheese.md"),
]


@pytest.fixture
def found(pipeline: Pipeline) -> list[RetrievedDocument]:
    pipeline.ingest(NOTES, "notes")
    return pipeline.retrieve(QUESTION).documents


def assembled(documents: list[RetrievedDocument], max_tokens: int = 2000, **more: Any) -> AssemblyOutput:
    return assemble(AssemblyInput(query=QUESTION, documents=documents, max_tokens=max_tokens, **more), COUNTER)


def judged(documents: list[RetrievedDocument], query: str = QUESTION, **more: Any) -> GroundingInput:
    return GroundingInput(query=query, documents=documents, prompt=assembled(documents).prompt, **more)


def to_answer(documents: list[RetrievedDocument], **more: Any) -> AnsweringInput:
    out = assembled(documents)
    return AnsweringInput(
        query=QUESTION, prompt=out.prompt, grounded_docs=out.documents, citations=out.citations, **more
    )


# --- 1: ingestion ---


def test_ingestion_output_job_id_indexed_and_status(pipeline: Pipeline) -> None:
    job = pipeline.ingest(NOTES, "notes")
    assert (job.indexed, job.status) == (3, JobStatus.COMPLETED)
    assert pipeline.jobs.get(job.job_id, User()).job_id == job.job_id
    assert pipeline.ingest(NOTES, "notes").job_id != job.job_id


def test_ingestion_guarantee_users_are_isolated(pipeline: Pipeline) -> None:
    ann, bob = User(user_id="ann"), User(user_id="bob")
    for user in (ann, bob):
        name = f"of-{user.user_id}"
        pipeline.put_source(
            DataSource(data_source_id=name, owner_id=user.user_id, visibility=Visibility.PERSONAL), user
        )
        pipeline.ingest(NOTES, name, user=user)
    assert {document.data_source_id for document in pipeline.retrieve(QUESTION, user=ann).documents} == {"of-ann"}
    assert pipeline.index.count(Selection("local")) == 6


# --- 2: retrieval ---


def test_retrieval_input_rerank_model_is_the_pipelines(pipeline: Pipeline, spanforge_events: CapturedEvents) -> None:
    pipeline.ingest(NOTES, "notes")
    pipeline.ask(QUESTION)
    [reranked] = spanforge_events.of_type("llm.rag.reranked")
    assert reranked["model"] == pipeline.modes["reranker"]


@pytest.mark.parametrize(("name", "taken"), [(None, True), (DEFAULT_RERANKER, True), ("another", False)])
def test_retrieval_input_rerank_model_of_another_reranker_is_refused(
    pipeline: Pipeline, name: str | None, taken: bool
) -> None:
    pipeline.ingest(NOTES, "notes")
    retriever = Retriever(pipeline.index, pipeline.embedder)

    def found() -> int:
        request = RetrievalInput(query=QUESTION, rerank_model=name)
        out = retriever.retrieve(request, process_query(QUESTION), org_id="local", sources=("notes",))
        return len(out.documents)

    if taken:
        assert found() > 0
        return
    with pytest.raises(InvalidInput, match="rerank_model") as caught:
        found()
    assert "another" not in str(caught.value)


PUMPS = ["Akaroa", "Brindisi", "Cuxhaven", "Dunedin", "Esbjerg", "Funchal", "Gijon", "Hamar", "Izmir", "Jurmala"]


class TopicEmbedder:
    """Tells topics apart and nothing finer: to it, all reports on pumps are one."""

    name, dimensions, dense_weight = "topics", 256, 1.0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.eye(256, dtype=np.float32)[[int("pump" in text) for text in texts]]


def test_retrieval_guarantee_reranking_improves_precision_over_embedding_similarity(pipeline: Pipeline) -> None:
    """The order by vectors is a matter of chance among reports of one topic; figures on public sets are in the docs."""
    texts = {name: f"The pump at {name} was overhauled after water had entered its bearings." for name in PUMPS}
    by_vectors = Pipeline(index=pipeline.index, embedder=TopicEmbedder())
    by_vectors.ingest([Document(document_id=name, text=text) for name, text in texts.items()], "pumps")

    def right(*, rerank: bool) -> int:
        questions = {name: f"Had water entered the bearings of the {name} pump?" for name in PUMPS}
        return sum(
            by_vectors.retrieve(question, top_k=1, rerank=rerank).documents[0].document_id == name
            for name, question in questions.items()
        )

    assert right(rerank=True) == len(PUMPS) > right(rerank=False)


def test_ingestion_input_embedding_model_makes_the_vectors_that_are_stored(pipeline: Pipeline) -> None:
    by_topic = Pipeline(index=pipeline.index, embedder=TopicEmbedder())
    by_topic.ingest(NOTES, "notes")
    vector = TopicEmbedder().embed(["anything else"])[0]
    hits = pipeline.index.search(SearchRequest("", vector, 10, Selection("local", ("notes",)))).candidates
    assert [hit.cosine for hit in hits] == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize("top_k", [1, 2])
def test_retrieval_input_top_k_is_how_many_come_back(pipeline: Pipeline, top_k: int) -> None:
    pipeline.ingest(NOTES, "notes")
    whole = pipeline.retrieve(QUESTION).documents
    assert pipeline.retrieve(QUESTION, top_k=top_k).documents == whole[:top_k]
    assert len(whole) > top_k


# --- access table ---


@pytest.mark.parametrize(
    ("visibility", "allowed"),
    [
        (Visibility.PUBLIC, {"owner", "holder", "member", "assigned", "plain"}),
        (Visibility.ROLE, {"owner", "holder"}),
        (Visibility.TEAM, {"owner", "member"}),
        (Visibility.PRIVATE, {"owner", "assigned"}),
        (Visibility.PERSONAL, {"owner"}),
    ],
)
def test_access_table_holds_for_what_is_retrieved(
    pipeline: Pipeline, visibility: Visibility, allowed: set[str]
) -> None:
    owner = User(user_id="owner")
    readers = [
        owner,
        User(user_id="holder", roles=frozenset({"auditor"})),
        User(user_id="member", teams=frozenset({"keepers"})),
        User(user_id="assigned"),
        User(user_id="plain"),
    ]
    pipeline.put_source(
        DataSource(
            data_source_id="notes", owner_id="owner", visibility=visibility, roles=frozenset({"auditor"}),
            teams=frozenset({"keepers"}), user_ids=frozenset({"assigned"}),
        ),
        owner,
    )  # fmt: skip
    pipeline.ingest(NOTES, "notes", user=owner)
    pipeline.put_source(DataSource(data_source_id="open", owner_id="owner"), owner)
    pipeline.ingest(Document(document_id="else", text="Another lighthouse at Cape Wrath."), "open", user=owner)
    seen = {
        reader.user_id
        for reader in readers
        if any(d.data_source_id == "notes" for d in pipeline.retrieve(QUESTION, user=reader).documents)
    }
    assert seen == allowed


# --- 3: context assembly ---


def test_assembly_input_query_and_documents_stand_in_the_prompt(found: list[RetrievedDocument]) -> None:
    prompt = assembled(found).prompt
    assert QUESTION in prompt
    assert all(document.text in prompt for document in found)


def test_assembly_input_max_tokens_bounds_what_is_included(found: list[RetrievedDocument]) -> None:
    whole, one = assembled(found), assembled(found[:1])
    assert (whole.included_docs, one.included_docs) == (len(found), 1)
    assert assembled(found, max_tokens=one.token_count).included_docs == 1


def test_assembly_input_template_frames_the_prompt(found: list[RetrievedDocument]) -> None:
    assert assembled(found, template="Q: {query}\n{context}").prompt.startswith(f"Q: {QUESTION}\n")


def test_assembly_output_prompt_token_count_and_included_docs_agree(found: list[RetrievedDocument]) -> None:
    out = assembled(found)
    assert out.token_count == COUNTER.count(out.prompt) <= 2000
    assert out.included_docs == len(out.documents) == len(found)


def test_assembly_output_citations_are_one_for_each_document_in_its_order(found: list[RetrievedDocument]) -> None:
    assert [(c.number, c.chunk_id) for c in assembled(found).citations] == [
        (number, document.chunk_id) for number, document in enumerate(found, start=1)
    ]


def test_assembly_guarantee_the_prompt_fits_or_overflows(found: list[RetrievedDocument]) -> None:
    least = assembled(found[:1]).token_count
    for budget in (least, least + 20, 2000):
        assert assembled(found, max_tokens=budget).token_count <= budget
    with pytest.raises(ContextOverflow):
        assembled(found, max_tokens=20)


def test_assembly_guarantee_most_relevant_documents_first(found: list[RetrievedDocument]) -> None:
    prompt = assembled(found).prompt
    places = [prompt.index(document.text) for document in found]
    assert places == sorted(places)
    assert assembled(found, max_tokens=assembled(found[:1]).token_count).documents[0].text == found[0].text


def test_assembly_guarantee_citations_map_to_source_documents(found: list[RetrievedDocument]) -> None:
    sources = {document.document_id: document.name for document in NOTES}
    out = assembled(found)
    for citation, document in zip(out.citations, found, strict=True):
        assert (citation.document_id, citation.source) == (document.document_id, sources[document.document_id])
        assert f"[{citation.number}] Source: {citation.source}" in out.prompt


def test_assembly_guarantee_context_and_query_are_clearly_separated(found: list[RetrievedDocument]) -> None:
    prompt = assembled(found).prompt
    opening, closing = prompt.index("<<<PASSAGES"), prompt.index("<<<END")
    assert all(opening < prompt.index(document.text) < closing for document in found)
    assert not opening < prompt.index(QUESTION) < closing


# --- 4: grounding ---


def test_grounding_input_query_documents_and_prompt_are_what_is_judged(found: list[RetrievedDocument]) -> None:
    assert check_context(judged(found)).is_groundable
    assert not check_context(judged(found, "Does a zeppelin lift a lighthouse?")).is_groundable
    assert not check_context(judged(found[:0])).is_groundable


def test_grounding_input_strict_mode_refuses(found: list[RetrievedDocument]) -> None:
    query = "Does a zeppelin lift a lighthouse?"
    assert check_context(judged(found, query)).gaps
    with pytest.raises(InsufficientContext):
        check_context(judged(found, query, strict_mode=True))


def test_grounding_output_is_groundable_follows_the_grounding_score(found: list[RetrievedDocument]) -> None:
    good, poor = (check_context(judged(found, q)) for q in (QUESTION, "Does a zeppelin lift a lighthouse?"))
    assert good.is_groundable
    assert 0.0 <= poor.grounding_score < good.grounding_score <= 1.0


def test_grounding_output_relevant_docs_are_among_the_documents(found: list[RetrievedDocument]) -> None:
    relevant = [document.chunk_id for document in check_context(judged(found)).relevant_docs]
    assert found[0].chunk_id in relevant
    assert set(relevant) <= {document.chunk_id for document in found}


def test_grounding_output_gaps_name_what_the_documents_lack(found: list[RetrievedDocument]) -> None:
    gaps = check_context(judged(found, "Does a zeppelin lift a lighthouse?")).gaps
    assert "zeppelin" in {gap.lower() for gap in gaps}


def test_grounding_guarantee_checks_if_the_query_is_answerable(found: list[RetrievedDocument]) -> None:
    assert check_context(judged(found)).is_groundable
    assert not check_context(judged(found, "Who painted the ceiling of the chapel?")).is_groundable


def test_grounding_guarantee_filters_out_irrelevant_documents(pipeline: Pipeline) -> None:
    pipeline.ingest(NOTES, "notes")
    both = [d for query in (QUESTION, "How long does Gouda ripen?") for d in pipeline.retrieve(query).documents[:1]]
    assert [document.document_id for document in both] == ["light", "cheese"]
    assert [document.document_id for document in check_context(judged(both)).relevant_docs] == ["light"]


def test_grounding_guarantee_strict_mode_rejects_with_insufficient_context(found: list[RetrievedDocument]) -> None:
    assert check_context(judged(found, strict_mode=True)).is_groundable
    with pytest.raises(InsufficientContext):
        check_context(judged(found, "Who painted the ceiling of the chapel?", strict_mode=True))


# --- 5: answering ---


def test_answering_input_prompt_model_and_temperature_reach_the_model(pipeline: Pipeline) -> None:
    with chat_server(lambda _: "It was built in 1828 [1].") as server:
        answerer = OpenAIAnswerer("default", base_url=f"{server.url}/v1", api_key="key", max_retries=0)
        asked = Pipeline(index=pipeline.index, answerer=answerer)
        asked.ingest(NOTES, "notes")
        asked.ask(QUESTION, model="other", temperature=0.0)
        asked.close()
    [body] = server.requests
    assert (body["model"], body["temperature"]) == ("other", 0.0)
    assert QUESTION in body["messages"][0]["content"]


def test_answering_input_grounded_docs_and_citations_are_all_it_uses(found: list[RetrievedDocument]) -> None:
    light, others = found[:1], [document for document in found[1:] if "1828" not in document.text]
    assert ExtractiveAnswerer().answer(to_answer(light)).answer == "1828 [1]"
    assert "1828" not in ExtractiveAnswerer().answer(to_answer(others)).answer


def test_answering_input_stream_gives_the_same_answer(pipeline: Pipeline, found: list[RetrievedDocument]) -> None:
    assert found
    *pieces, result = pipeline.stream(QUESTION)
    assert isinstance(result, RagResult)
    assert "".join(map(str, pieces)) == result.answer == pipeline.ask(QUESTION).answer


def test_answering_output_answer_citations_used_and_confidence(found: list[RetrievedDocument]) -> None:
    out = ExtractiveAnswerer().answer(to_answer(found))
    assert out.answer == "1828 [1]"
    assert [citation.chunk_id for citation in out.citations_used] == [found[0].chunk_id]
    assert 0.5 < out.confidence <= 1.0


def test_answering_guarantee_the_answer_is_based_on_grounded_context_only(
    pipeline: Pipeline, found: list[RetrievedDocument]
) -> None:
    assert found
    zeppelin = pipeline.ask("Does a zeppelin lift a lighthouse?")
    assert zeppelin.status in {RagStatus.UNCERTAIN, RagStatus.NO_INFORMATION}
    assert zeppelin.ungrounded_claims == []
    assert pipeline.ask("What is the capital of France?").answer == REFUSAL


def test_answering_guarantee_citations_are_included_and_nothing_is_made_up(
    pipeline: Pipeline, found: list[RetrievedDocument]
) -> None:
    result = pipeline.ask(QUESTION)
    assert "[1]" in result.answer
    assert check_answer(result.answer, found, QUESTION).score == 1.0
    assert result.ungrounded_claims == []


def test_answering_guarantee_streaming_is_supported(pipeline: Pipeline, found: list[RetrievedDocument]) -> None:
    assert found
    assert isinstance(next(iter(pipeline.stream(QUESTION))), str)
