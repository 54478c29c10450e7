from __future__ import annotations

import pytest

from spanforge.reference.grounding import split_claims
from spanforge.reference.grounding.claims import is_yes_or_no, read_claim, strip_citations


def test_each_sentence_is_a_claim_without_its_citation():
    answer = "The tower was built in 1889 [1]. It is 330 metres high [2][3]."
    assert split_claims(answer) == ["The tower was built in 1889.", "It is 330 metres high."]


def test_list_items_are_claims_without_their_marks():
    answer = "- Copper conducts heat well.\n* Glass does not.\n2. Silver conducts best."
    assert split_claims(answer) == ["Copper conducts heat well.", "Glass does not.", "Silver conducts best."]


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        "   ",
        "***",
        "Yes.",
        "Is it true?",
        "I don't have information on that.",
        "I don\u2019t have enough information to answer that.",
        "Sorry, but I cannot answer this question.",
        "The provided documents do not contain the price.",
        "There is no information about it in the sources.",
    ],
)
def test_refusals_questions_and_fillers_claim_nothing(nothing: str):
    assert split_claims(nothing) == []


@pytest.mark.parametrize("fact", ["The document does not expire.", "I have a dog.", "There is no water on the moon."])
def test_statements_that_resemble_refusals_are_claims(fact: str):
    assert split_claims(fact) == [fact]


@pytest.mark.parametrize("marked", ["Paris [1]", "Paris [1][2]", "Paris [1, 2]", "Paris[12]", "Paris [1-3]"])
def test_citation_marks_are_removed(marked: str):
    assert strip_citations(marked) == "Paris"


def test_abbreviations_and_decimals_do_not_end_a_claim():
    assert split_claims("Dr. Lee paid $3.5 million to the U.S. Treasury in Jan. 2010.") == [
        "Dr. Lee paid $3.5 million to the U.S. Treasury in Jan. 2010."
    ]


def test_a_fragment_is_one_statement_with_its_question():
    claim = read_claim("Paris [1]", "What is the capital of France?")
    assert len(claim.units) == 1
    assert set(claim.units[0].words) == {"paris", "capit", "franc"}
    assert claim.asked == {"capit", "franc"}


def test_a_full_sentence_is_judged_without_its_question():
    claim = read_claim("Paris has been the capital of France since the tenth century.", "What is the capital?")
    assert not claim.asked


@pytest.mark.parametrize(("answer", "expected"), [("Yes.", True), ("No [1]", True), ("No way out", False), ("", False)])
def test_a_bare_yes_or_no_is_recognised(answer: str, expected: bool):
    assert is_yes_or_no(answer) is expected
