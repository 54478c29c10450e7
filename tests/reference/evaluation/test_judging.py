"""What a rating says of the passages an answer was made of, as the SDK records it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from spanforge._hashing import Hasher
from spanforge.reference.evaluation import judgements_of
from spanforge.sdk import sf_feedback, sf_rag, stored_sessions
from spanforge.testing import capture

_KEY = "a key that is longer than thirty-two bytes"
_Rating = tuple[str, Sequence[str], Mapping[str, object]]


def _run(used: Sequence[str], *ratings: _Rating, question: str = "q") -> None:
    session_id = sf_rag.trace_query(question)
    sf_rag.trace_retrieval(session_id, [{"id": name, "score": 0.5} for name in "abcd"])
    sf_rag.trace_generation(session_id, "m", chunk_ids_used=used)
    sf_rag.end_session(session_id)
    for rating, issues, relevance in ratings:
        sf_feedback.submit(session_id, rating=rating, metadata={"issues": issues, "relevance": relevance})


def _judged(*runs: tuple[Sequence[str], Sequence[_Rating]]) -> dict[str, int]:
    with capture() as captured:
        for used, ratings in runs:
            _run(used, *ratings)
        events = captured.all
    found = judgements_of(stored_sessions(events), [Hasher()])
    assert found.keys() <= {Hasher().digest("q")}
    return found.get(Hasher().digest("q"), {})


@pytest.mark.parametrize(
    ("rating", "grade"), [("thumbs_up", 2), ("star_5", 2), ("likert_4", 1), ("star_3", 0), ("thumbs_down", 0)]
)
def test_the_passages_of_an_answer_share_its_rating(rating: str, grade: int) -> None:
    assert _judged((["a", "b"], [(rating, (), {})])) == {"a": grade, "b": grade}


def test_ratings_of_several_runs_tell_passages_apart() -> None:
    bad, good = ("star_1", (), {}), ("star_5", (), {})
    assert _judged((["a", "b"], [bad]), (["b", "c"], [good]), (["b", "c"], [good])) == {"a": 0, "b": 0, "c": 2}


@pytest.mark.parametrize(
    ("issues", "judged"),
    [(["too_long"], {}), (["unclear", "too_slow"], {}), (["too_long", "wrong_source"], {"a": 0}), ([], {"a": 0})],
)
def test_a_fault_of_the_wording_is_none_of_the_passages(issues: Sequence[str], judged: dict[str, int]) -> None:
    assert _judged((["a"], [("thumbs_down", issues, {})])) == judged


def test_what_is_said_of_a_passage_comes_before_what_is_said_of_the_answer() -> None:
    told = {"a": 0, "b": True, "d": 3, "elsewhere": 3, "c": "relevant"}
    assert _judged((["a", "b", "c"], [("thumbs_up", (), told)])) == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert _judged((["a"], [("free_text", (), {"b": 1}), ("free_text", (), {"b": 2})])) == {"b": 2}


@pytest.mark.parametrize("wrong", [-1, 4, "1", None, [1]])
def test_a_grade_that_is_none_is_passed_over(wrong: object) -> None:
    assert _judged((["a"], [("free_text", (), {"a": wrong})])) == {}


def test_a_rating_alone_and_one_of_several_questions_say_nothing() -> None:
    with capture() as captured:
        sf_feedback.submit("nobody-knows", rating="star_5")
        session_id = sf_rag.trace_query("q")
        sf_rag.trace_query("r", session_id=session_id)
        sf_rag.trace_generation(session_id, "m", chunk_ids_used=["a"])
        sf_feedback.submit(session_id, rating="star_5")
        assert judgements_of(stored_sessions(captured.all), [Hasher()]) == {}


def test_passages_are_known_again_under_a_key() -> None:
    with capture(hash_key=_KEY) as captured:
        _run(["a"], ("free_text", (), {"b": 1}), question="secret question")
        hasher = Hasher(_KEY.encode())
        found = judgements_of(stored_sessions(captured.all), [Hasher(), hasher])
        assert found == {hasher.digest("secret question"): {"b": 1}}
        assert judgements_of(stored_sessions(captured.all), [Hasher()]) == {}


def test_stages_that_say_nothing_of_their_chunks_are_no_fault() -> None:
    with capture() as captured:
        _run(["a"], ("thumbs_up", (), {}))
        events = captured.all
    bare = [
        replace(one, payload={"session_id": one.session_id}) if one.event_type == "llm.rag.retrieved" else one
        for one in events
    ]
    assert judgements_of(stored_sessions(bare), [Hasher()]) == {Hasher().digest("q"): {"a": 2}}
