from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanforge.reference.grounding import ground_claims, groundability, split_claims, verify_answer
from spanforge.reference.grounding.contexts import sentences_of
from spanforge.reference.grounding.text import MAX_SENTENCE_CHARS

texts = st.text(max_size=200)


@given(texts, st.lists(texts, max_size=3), texts)
@example("\ud800 lone surrogate", ["\ud800"], "\udfff?")
@example("\x00\x00", ["\x00"], "\x00")
@example("\u0663\u0664 \u0645\u062a\u0631", ["\u0663\u0664 \u0645\u062a\u0631"], "")
@example("99:99 9999-99-99 $$$ 1e400", ["99:99 9999-99-99"], "")
@example("A.A.A.A. U.S. n't 's '", ["U.S.S.R. 's"], "?")
@example("\u0130stanbul \u1e9e \ufb03", ["\u0130STANBUL"], "\u01c5?")
def test_any_text_is_judged(answer: str, contexts: list[str], question: str):
    verdicts = ground_claims([answer], contexts, question)
    assert 0.0 < verdicts[0].probability < 1.0
    for verdict in verdicts:
        if verdict.evidence is not None:
            assert verdict.context_index is not None
            start, end = verdict.evidence
            assert 0 <= start < end <= len(contexts[verdict.context_index])
    grounding = verify_answer(answer, contexts, question)
    assert (grounding.score is None) == (grounding.claims_total == 0)
    assert 0.0 <= groundability(question, contexts).score <= 1.0


@given(st.lists(st.sampled_from(["word", "London", "7", "not", "km", ",", "1990"]), min_size=1, max_size=400))
@settings(max_examples=30)
def test_sentences_are_bounded_however_long_the_text(words: list[str]):
    assert all(len(sentence.text) <= MAX_SENTENCE_CHARS for sentence in sentences_of(" ".join(words)))


@pytest.mark.slow
def test_a_hundred_thousand_words_are_judged():
    flood = " ".join(f"word{number % 7919} Name{number % 97} {number}" for number in range(33_000))
    (verdict,) = ground_claims([flood], [flood])
    assert verdict.verdict == "supported"
    assert len(split_claims(flood)) > 1
    assert verify_answer("word1 met Name1.", [flood, " " * 100_000, "x" * 100_000]).claims_total == 1
