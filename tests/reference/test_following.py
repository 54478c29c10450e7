"""A follow-up is answered as the question it stands for, in the conversation of the one who asks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanforge.reference import Document, Pipeline, User
from spanforge.reference.asking.following import Conversations, standing_alone
from spanforge.reference.failures import InvalidInput
from spanforge.testing import CapturedEvents

TOWER = "The Eiffel Tower was completed in 1889. The Rialto Bridge was finished in 1591."
FIRST = "Where is the Eiffel Tower?"


@pytest.mark.parametrize(
    ("earlier", "question", "alone"),
    [
        ([FIRST], "When was it completed?", "When was the Eiffel Tower completed?"),
        ([FIRST, "When was it completed?"], "Who built it?", "Who built the Eiffel Tower?"),
        (["Who leads the Lantern team?"], "Where is her office?", "Where is the Lantern's office?"),
        (["What is the capital of France?"], "And of Spain?", "What is the capital of Spain?"),
        (["How many people work in Odense?"], "And in Leeds?", "How many people work in Leeds?"),
        (["How many people work in Odense?"], "In Leeds?", "How many people work in Leeds?"),
        (["What does the Calibrex Mini cost?"], "What about the Levelo Laser?", "What does the Levelo Laser cost?"),
        (["What was sold in Oslo in Q3 2024?"], "And Q4?", "What was sold in Oslo in Q4 2024?"),
        (["What was sold in Oslo in 2024?"], "and 2023?", "What was sold in Oslo in 2023?"),
        (["What was sold in Oslo in 2024?", "And in Bergen?"], "And Q4?", "And Q4 sold Bergen 2024?"),
        (["What happens in the first week?"], "And in the second one?", "What happens in the second one?"),
        (["What does calibration cost?"], "And for lasers?", "And for lasers calibration cost?"),
        (
            ["How do I install the VPN on Windows?"],
            "How do I install it on macOS?",
            "How do I install the VPN on macOS?",
        ),
        (["Who leads Leeds?"], "And why?", "And why leads Leeds?"),
        ([FIRST], "How many moons does Jupiter have?", "How many moons does Jupiter have?"),
        ([], "When was it completed?", "When was it completed?"),
    ],
)
def test_what_a_question_leaves_to_earlier_ones_is_said(earlier: list[str], question: str, alone: str) -> None:
    assert standing_alone(question, earlier) == alone


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=4))
def test_any_question_after_any_others_is_a_question(question: str, earlier: list[str]) -> None:
    assert isinstance(standing_alone(question, earlier), str)
    assert standing_alone(question, []) == question


def test_a_conversation_remembers_for_the_one_who_asks_and_for_nobody_else(spanforge_events: CapturedEvents) -> None:
    ann, bob = User(user_id="ann"), User(user_id="bob")
    with Pipeline() as pipeline:
        pipeline.ingest(Document(document_id="d", text=TOWER))
        pipeline.ask("What is the Eiffel Tower?", conversation_id="c", user=ann)
        assert pipeline.ask("When was it completed?", conversation_id="c", user=ann).answer == "1889 [1]"
        assert pipeline.ask("When was it completed?", history=["What is the Eiffel Tower?"]).answer == "1889 [1]"
        alone = pipeline.ask("Who has it now?", conversation_id="c", user=bob)
    assert alone.answer != "1889 [1]"
    conversations = [payload.get("conversation_id") for payload in spanforge_events.of_type("llm.rag.query")]
    assert conversations == ["c", "c", None, "c"]
    assert "Eiffel" not in str(list(spanforge_events))


def test_conversations_are_bounded_and_show_no_text() -> None:
    conversations = Conversations()
    for number in range(2_000):
        conversations.next(("o", "u", number), FIRST, [])
    assert repr(conversations) == "Conversations(1024)"
    assert conversations.next(("o", "u", 0), "Who built it?", []) == "Who built it?"


def test_a_history_that_is_too_long_is_refused() -> None:
    with Pipeline() as pipeline, pytest.raises(InvalidInput):
        pipeline.ask("And then?", history=["What?"] * 33)
