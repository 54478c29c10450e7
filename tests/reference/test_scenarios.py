"""The protocol's three test scenarios, and the six failure scenarios with how each is detected and resolved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from reference.test_contract_assembly import COUNTER

from spanforge.reference import Document, Filter, Pipeline, RagStatus
from spanforge.reference import tracing as rag_tracing
from spanforge.reference.answering import ExtractiveAnswerer
from spanforge.reference.asking.assembly import DEFAULT_TEMPLATE, REFUSAL
from spanforge.reference.asking.recovery import RecoverySettings
from spanforge.reference.asking.selection import SelectionSettings
from spanforge.reference.failures import NoResults
from spanforge.reference.models import AnsweringInput, AnsweringOutput
from spanforge.testing import CapturedEvents

NOW = datetime.now(UTC)


@pytest.fixture
def bundled(pipeline: Pipeline) -> Pipeline:
    assert pipeline.ingest_bundled_corpus().failures == []
    return pipeline


# --- test scenarios ---


def test_scenario_1_factual_question_with_perfect_retrieval(
    bundled: Pipeline, spanforge_events: CapturedEvents
) -> None:
    result = bundled.ask("What is the capital of France?")
    assert result.answer == "Paris [1]"
    assert (result.grounding_score, result.status) == (1.0, RagStatus.GROUNDED)
    assert [citation.source for citation in result.citations_used] == ["france.md"]
    [generated] = spanforge_events.of_type("llm.rag.generated")
    assert generated["grounding_score"] == 1.0
    stages = [event.event_type.removeprefix("llm.rag.") for event in spanforge_events]
    assert stages == ["query", "retrieved", "reranked", "generated", "evaluated", "session"]


def test_scenario_2_query_with_no_relevant_documents(bundled: Pipeline, spanforge_events: CapturedEvents) -> None:
    result = bundled.ask("Who won the chess championship on Mars?")
    assert result.answer == REFUSAL == "I don't have information on that"
    assert (result.status, result.citations_used, result.confidence) == (RagStatus.NO_INFORMATION, [], 0.0)
    [escalated] = spanforge_events.of_type("llm.rag.escalated")
    assert escalated["trigger"] == "no_documents"


def test_scenario_3_multi_hop_cites_every_source(pipeline: Pipeline) -> None:
    pipeline.ingest(
        [
            Document(
                document_id="services", text="The Beacon service is maintained by the Lantern team.", name="services.md"
            ),
            Document(document_id="teams", text="The Lantern team is led by Ines Duarte.", name="teams.md"),
            Document(document_id="people", text="Ines Duarte works in the Porto office.", name="people.md"),
            Document(document_id="other", text="The Compass app is maintained by the Tidewater team.", name="other.md"),
        ],
    )
    result = pipeline.ask("Who leads the team that maintains the Beacon service, and in which office does she work?")
    assert set(result.sources) == {"services.md", "teams.md", "people.md"}
    assert all(name in result.answer for name in ("Lantern", "Ines Duarte", "Porto"))
    assert result.grounding_score == 1.0


# --- failure scenario 1: poor retrieval quality ---


def test_failure_scenario_1_poor_retrieval_is_detected_and_reindexing_resolves_it(pipeline: Pipeline) -> None:
    """Passages cut far too small lose the words that belong together; cutting them anew finds the answer."""
    text = "# Harbour dues\n\nEvery vessel pays a fee of 40 euros.\n\nThe fee is due on arrival."
    pipeline.ingest(Document(document_id="stale", text="Minutes of a meeting about parking.", name="dues.md"))
    before = pipeline.ask("What fee does every vessel pay?")
    assert before.status is RagStatus.NO_INFORMATION
    pipeline.ingest(Document(document_id="stale", text=text, name="dues.md"))
    after = pipeline.ask("What fee does every vessel pay?")
    assert "40 euros" in after.answer
    assert after.status is RagStatus.GROUNDED


# --- failure scenario 2: context exceeding the token limit ---


def test_failure_scenario_2_too_much_context_is_summarised_selectively_within_the_budget(pipeline: Pipeline) -> None:
    filler = " ".join(f"Remark {i} is about the weather in the valley." for i in range(60))
    pipeline.ingest(
        [
            Document(document_id="a", text=f"{filler} The sluice opens at 06:30 every day. {filler}"),
            Document(document_id="b", text=f"{filler} The sluice keeper is Marta Quist. {filler}"),
        ]
    )
    budget = COUNTER.count(DEFAULT_TEMPLATE) + 120
    result = pipeline.ask("When does the sluice open?", max_tokens=budget)
    assert "06:30" in result.answer
    assert sum(document.tokens for document in result.documents) <= 120
    assert all("The sluice" in document.text for document in result.documents)


# --- failure scenario 3: low grounding score ---


class Embroiderer:
    """A model that invents at a high temperature and quotes at a low one."""

    model, provider, generative = "embroiderer", "test", True

    def __init__(self) -> None:
        self.temperatures: list[float] = []

    def answer(self, request: AnsweringInput) -> AnsweringOutput:
        self.temperatures.append(request.temperature)
        if request.temperature > 0:
            return AnsweringOutput(
                answer="The king of Prussia owns nine silver submarines [1].",
                citations_used=request.citations[:1],
                confidence=1.0,
                model=self.model,
            )
        return ExtractiveAnswerer().answer(request)

    def stream(self, request):  # type: ignore[no-untyped-def]
        yield self.answer(request)

    def close(self) -> None: ...

    async def aanswer(self, request):  # type: ignore[no-untyped-def]
        return self.answer(request)

    async def astream(self, request):  # type: ignore[no-untyped-def]
        yield self.answer(request)


LIGHT = Document(document_id="light", text="The lighthouse at Cape Wrath was built in 1828.", name="light.md")


def test_failure_scenario_3_low_grounding_is_regenerated_with_lower_temperature(
    pipeline: Pipeline, spanforge_events: CapturedEvents
) -> None:
    model = Embroiderer()
    retry = Pipeline(index=pipeline.index, answerer=model)
    retry.ingest(LIGHT)
    result = retry.ask("When was the lighthouse at Cape Wrath built?")
    assert model.temperatures == [0.3, 0.0]
    assert (result.recovery, result.answer, result.status) == ("regenerated", "1828 [1]", RagStatus.GROUNDED)
    assert len(spanforge_events.of_type("llm.rag.generated")) == 2


def test_failure_scenario_3_without_a_second_attempt_it_escalates(spanforge_events: CapturedEvents) -> None:
    pipeline = Pipeline(answerer=Embroiderer(), recovery=RecoverySettings(regenerate=False))
    pipeline.ingest(LIGHT)
    result = pipeline.ask("When was the lighthouse at Cape Wrath built?")
    assert result.status is RagStatus.NOT_GROUNDED
    assert {payload["trigger"] for payload in spanforge_events.of_type("llm.rag.escalated")} == {"grounding"}


# --- failure scenario 4: slow retrieval latency ---


def test_failure_scenario_4_slow_answers_escalate_and_the_cache_resolves_them(
    pipeline: Pipeline, spanforge_events: CapturedEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag_tracing, "SLOW_MS", 0.0)  # every answer counts as slow
    cached = Pipeline(index=pipeline.index, recovery=RecoverySettings(cached_answers="always"))
    cached.ingest(LIGHT)
    question = "When was the lighthouse at Cape Wrath built?"
    first = cached.ask(question)
    assert [p["trigger"] for p in spanforge_events.of_type("llm.rag.escalated")] == ["latency"]
    second = cached.ask(question)
    assert (second.answer, second.recovery) == (first.answer, "cached_answer")
    assert "retrieval" not in second.latencies_ms
    cached.ingest(Document(document_id="light", text="The lighthouse at Cape Wrath was built in 1829."))
    assert cached.ask(question).answer == "1829 [1]"


def test_an_answer_does_not_outlive_a_document_that_went_while_it_was_written() -> None:
    pipeline: Pipeline

    class Interrupted(ExtractiveAnswerer):
        def answer(self, request: AnsweringInput) -> AnsweringOutput:
            output = super().answer(request)
            pipeline.delete("default", ["light"])
            return output

    pipeline = Pipeline(answerer=Interrupted(), recovery=RecoverySettings(cached_answers="always"))
    pipeline.ingest(LIGHT)
    question = "When was the lighthouse at Cape Wrath built?"
    assert pipeline.ask(question).status is RagStatus.GROUNDED
    again = pipeline.ask(question)
    assert (again.status, again.recovery) == (RagStatus.NO_INFORMATION, None)


# --- failure scenario 5: outdated information ---


def test_failure_scenario_5_old_documents_rank_lower_and_can_be_filtered_out(pipeline: Pipeline) -> None:
    pipeline.ingest(
        [
            Document(
                document_id="old", text="The ferry leaves at 08:15 from pier two.", timestamp=NOW - timedelta(days=3000)
            ),
            Document(
                document_id="new", text="The ferry leaves at 09:45 from pier two.", timestamp=NOW - timedelta(days=1)
            ),
        ]
    )
    assert "09:45" in pipeline.ask("When does the ferry leave from pier two?").answer
    fresh = Filter(field="timestamp", op="ge", value=NOW - timedelta(days=365))
    result = pipeline.ask("When does the ferry leave from pier two?", filters=[fresh])
    assert [document.document_id for document in result.documents] == ["new"]


def test_recency_counts_in_the_choice_of_context() -> None:
    assert SelectionSettings().recency == 0.2


# --- failure scenario 6: no relevant documents found ---


def test_failure_scenario_6_nothing_found_is_told_honestly_and_a_wider_corpus_resolves_it(
    pipeline: Pipeline, spanforge_events: CapturedEvents
) -> None:
    pipeline.ingest(LIGHT)
    question = "Which fish lives in Lake Ohrid?"
    with pytest.raises(NoResults):
        pipeline.retrieve(question)
    before = pipeline.ask(question)
    assert (before.answer, before.failure) == (REFUSAL, "NO_RESULTS")
    assert {payload["trigger"] for payload in spanforge_events.of_type("llm.rag.escalated")} == {"no_documents"}
    pipeline.ingest(Document(document_id="fish", text="The Ohrid trout lives in Lake Ohrid."))
    assert "Ohrid trout" in pipeline.ask(question).answer
