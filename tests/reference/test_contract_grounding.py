"""Sub-contract 4 and protocol step 5: the checks before and after the answer, as the pipeline uses them."""

from __future__ import annotations

import pytest
from reference.test_contract_assembly import passage

from spanforge.reference import Document, Pipeline, RagStatus, grounding
from spanforge.reference.asking.grounding_checks import check_answer, check_context
from spanforge.reference.asking.results import status_of
from spanforge.reference.failures import GroundingFailed, InsufficientContext
from spanforge.reference.models import GroundingInput, GroundingOutput
from spanforge.testing import CapturedEvents

LOCK = passage("lock", "A lock lifts a barge from one level of the canal to the next.")
CHEESE = passage("cheese", "Gouda is a cheese that ripens for several months.")


def request(query: str, *, strict: bool = False) -> GroundingInput:
    return GroundingInput(query=query, documents=[LOCK, CHEESE], prompt="", strict_mode=strict)


def test_input_and_output_names_follow_the_contract() -> None:
    assert {"query", "documents", "prompt", "strictMode"} == set(request("q").model_dump(by_alias=True))
    out = check_context(request("What lifts a barge in a canal?"))
    assert {"isGroundable", "groundingScore", "relevantDocs", "gaps"} == set(out.model_dump(by_alias=True))


def test_guarantee_checks_if_the_query_is_answerable() -> None:
    assert check_context(request("What lifts a barge to the next level of the canal?")).is_groundable
    assert not check_context(request("Who painted the ceiling of the chapel?")).is_groundable


def test_guarantee_filters_out_irrelevant_documents() -> None:
    out = check_context(request("What lifts a barge in the canal?"))
    assert [document.chunk_id for document in out.relevant_docs] == ["lock"]


def test_output_gaps_name_what_is_missing() -> None:
    assert "zeppelin" in {gap.lower() for gap in check_context(request("Does a zeppelin lift a barge?")).gaps}


def test_guarantee_strict_mode_rejects_with_insufficient_context() -> None:
    with pytest.raises(InsufficientContext):
        check_context(request("Who painted the ceiling of the chapel?", strict=True))
    assert isinstance(check_context(request("What lifts a barge?", strict=True)), GroundingOutput)


class BrokenGrounder:
    """A grounder whose model does not load."""

    def groundability(self, question, _contexts):  # type: ignore[no-untyped-def]
        raise OSError("weights of the question: " + question)

    def verify_answer(self, answer, _contexts, _question):  # type: ignore[no-untyped-def]
        raise ValueError("cannot judge " + answer)


def test_failure_grounding_failed_carries_no_text() -> None:
    for check in (
        lambda: check_context(request("secret question"), BrokenGrounder()),
        lambda: check_answer("secret answer", [LOCK], "secret question", BrokenGrounder()),
    ):
        with pytest.raises(GroundingFailed) as caught:
            check()
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None


def test_failure_grounding_failed_leaves_the_score_absent(spanforge_events: CapturedEvents) -> None:
    pipeline = Pipeline(grounder=BrokenGrounder())
    pipeline.ingest(Document(document_id="d", text=LOCK.text))
    result = pipeline.ask("What lifts a barge?")
    assert (result.grounding_score, result.status) == (None, RagStatus.UNVERIFIED)
    assert "GROUNDING_FAILED" in result.warnings
    [generated] = spanforge_events.of_type("llm.rag.generated")
    assert "grounding_score" not in generated
    with pytest.raises(GroundingFailed):
        pipeline.ask("What lifts a barge?", strict=True)


class Unconvinced:
    """A grounder that finds support for nothing."""

    groundability = staticmethod(grounding.groundability)

    def verify_answer(self, answer, _contexts, question):  # type: ignore[no-untyped-def]
        return grounding.verify_answer(answer, ["Something else altogether."], question)


def test_failure_not_grounded_is_a_warning_and_in_strict_mode_a_refusal(spanforge_events: CapturedEvents) -> None:
    pipeline = Pipeline(grounder=Unconvinced())
    pipeline.ingest(Document(document_id="d", text=LOCK.text))
    result = pipeline.ask("What lifts a barge?")
    assert result.grounding_score == 0.0
    assert "NOT_GROUNDED" in result.warnings
    assert result.ungrounded_claims
    [escalated] = spanforge_events.of_type("llm.rag.escalated")
    assert (escalated["trigger"], escalated["value"], escalated["threshold"]) == ("grounding", 0.0, 0.5)
    refused = pipeline.ask("What lifts a barge?", strict=True)
    assert (refused.failure, refused.status) == ("NOT_GROUNDED", RagStatus.NO_INFORMATION)


def test_each_claim_names_the_passage_that_decides_it() -> None:
    pipeline = Pipeline()
    pipeline.ingest([Document(document_id="a", text=LOCK.text), Document(document_id="b", text=CHEESE.text)])
    result = pipeline.ask("What lifts a barge from one level of the canal to the next?")
    [claim] = result.claims
    assert claim.verdict == "supported"
    assert claim.chunk_id == result.citations_used[0].chunk_id


@pytest.mark.parametrize(
    ("score", "status"),
    [(1.0, "grounded"), (0.8, "grounded"), (0.79, "partially_grounded"), (0.5, "partially_grounded"),
     (0.49, "not_grounded"), (0.0, "not_grounded"), (None, "unverified")],
)  # fmt: skip
def test_thresholds_are_those_of_the_protocol(score: float | None, status: str) -> None:
    assert status_of(score).value == status


def test_a_refusal_has_no_grounding_score_anywhere(spanforge_events: CapturedEvents) -> None:
    pipeline = Pipeline()
    pipeline.ingest(Document(document_id="d", text="How tall the lock at Falkirk is, nobody knows."))
    result = pipeline.ask("Which goose won the village fair?")
    assert (result.status, result.grounding_score, result.claims_total) == (RagStatus.NO_INFORMATION, None, 0)
    assert all("grounding_score" not in payload for payload in spanforge_events.of_type("llm.rag.generated"))
    [summary] = spanforge_events.of_type("llm.rag.session")
    assert "avg_grounding_score" not in summary
