from __future__ import annotations

from spanforge.reference.grounding import groundability

FRANCE = "Paris is the capital of France and its largest city."
TIDES = "Tides are caused by the gravity of the moon and the sun."


def test_a_question_the_contexts_answer_scores_high_and_has_no_gaps():
    score, relevance, gaps = groundability("What is the capital of France?", [TIDES, FRANCE])
    assert score > 0.8
    assert relevance[1] > 0.8
    assert relevance[0] < 0.3
    assert gaps == []


def test_a_question_about_something_else_scores_low_and_names_its_gaps():
    score, _, gaps = groundability("Who won the chess olympiad in Batumi?", [TIDES, FRANCE])
    assert score < 0.2
    assert {"chess", "olympiad", "Batumi"} <= set(gaps)


def test_a_missing_name_halves_the_score():
    known = groundability("What is the capital of France?", [FRANCE]).score
    unknown = groundability("What is the capital of Estonia?", [FRANCE]).score
    assert unknown < known / 2


def test_nothing_to_ask_or_nothing_to_read_scores_zero():
    assert groundability("", [FRANCE]) == (0.0, [0.0], [])
    assert groundability("the of and", [FRANCE]).score == 0.0
    assert groundability("What is the capital of France?", []).score == 0.0
