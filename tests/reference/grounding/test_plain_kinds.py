"""What needs no weighing: refusals and polite phrases claim nothing, and a copy is surest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanforge.reference.grounding.claims import split_claims
from spanforge.reference.grounding.verify import verify_answer

CITY = "Paris is the capital of France and its largest city."


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n",
        "[1]",
        "I don't have information on that.",
        "I'm sorry, but I could not find an answer in the passages.",
        "The answer is not mentioned in the provided documents.",
        "This information is not available in the context.",
        "No relevant information was found.",
        "Unfortunately, the passages do not say when it was built.",
        "There is no mention of it.",
        "It is not stated in the text.",
        "Not mentioned in the passages.",
        "I am unable to determine this.",
        "The documents provide no details.",
        "Sure! Here is a summary of the passages:",
        "I hope this helps! Let me know if you have questions.",
        "Not sure; the closest passages say:",
    ],
)
def test_what_claims_nothing_is_not_grounded(answer: str) -> None:
    result = verify_answer(answer, [CITY], "What is the capital of France?")
    assert (result.status, result.score, result.weakest) == ("no_claims", None, None)


@pytest.mark.parametrize(
    "claim",
    [
        "No visitor may enter the mill after six.",
        "Sure grip tyres are needed on the ramp.",
        "The documents of the ship are kept by the captain.",
        "It is not the tallest tower of the town.",
        "Below the bridge lies the old harbour.",
    ],
)
def test_a_claim_that_begins_like_a_refusal_or_a_phrase_is_one(claim: str) -> None:
    assert split_claims(claim) == [claim]


def test_what_announces_a_claim_is_none() -> None:
    assert split_claims("Here is a summary:\nParis is the capital of France.") == ["Paris is the capital of France."]


@given(st.sampled_from(["Paris", "Lyon", "Oslo", "Rome"]), st.sampled_from(["Madrid", "Bern", "Kyiv", "Lima"]))
def test_a_copy_is_surest_and_the_same_of_another_is_not_supported(city: str, other: str) -> None:
    source = f"{city} is the capital of the old province."
    copied = verify_answer(source, [f"The fair is held in May. {source}"])
    assert copied.weakest is not None
    assert copied.weakest > 0.99
    swapped = verify_answer(source.replace(city, other), [source])
    assert (swapped.status, swapped.verdicts[0].verdict) == ("ungrounded", "contradicted")


def test_an_answer_is_as_weak_as_its_weakest_claim() -> None:
    result = verify_answer(f"{CITY} The king owns nine silver submarines.", [CITY])
    assert result.weakest == min(verdict.probability for verdict in result.verdicts) < 0.5
