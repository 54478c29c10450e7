"""`sf_feedback`: ratings, their summaries, and what is kept of what people say."""

from __future__ import annotations

import hashlib
import os

import pytest

from spanforge.namespaces.feedback import FeedbackRating
from spanforge.sdk import FeedbackStatusInfo, SFFeedbackClient, SFRAGClient
from spanforge.sinks.memory import MemorySink


@pytest.fixture
def feedback(client: SFRAGClient) -> SFFeedbackClient:
    shared = SFFeedbackClient()
    shared.cell = client.cell
    return shared


@pytest.mark.parametrize(
    ("rating", "value", "helpful"),
    [
        ("thumbs_up", 1.0, True),
        ("thumbs_down", 0.0, False),
        ("star_1", 0.0, False),
        ("star_3", 0.5, False),
        ("star_4", 0.75, True),
        ("likert_5", 1.0, True),
        ("free_text", None, None),
    ],
)
def test_a_rating_is_a_number_and_helpful_from_four_points(
    rating: str, value: float | None, helpful: bool | None, feedback: SFFeedbackClient, sink: MemorySink
) -> None:
    feedback.submit("s", "t", rating)
    payload = sink.of_type("llm.feedback.submitted")[0]
    assert payload["rating"] == rating
    assert payload.get("value") == value
    assert FeedbackRating(rating).helpful is helpful


def test_of_a_comment_and_a_user_only_digests_are_kept(feedback: SFFeedbackClient, sink: MemorySink) -> None:
    feedback.submit("s", "t", "star_5", comment="Lovely.", user_id="anna", metadata={"page": 3, "note": "x"})
    payload = sink.of_type("llm.feedback.submitted")[0]
    assert payload["comment_hash"] == hashlib.sha256(b"Lovely.").hexdigest()
    assert payload["user_id_hash"] == hashlib.sha256(b"anna").hexdigest()
    assert payload["metadata"]["page"] == 3
    assert payload["metadata"]["note"].startswith("str:sha256:")
    assert (payload["session_id"], payload["trace_id"], payload["source"]) == ("s", "t", "api")


def test_a_summary_counts_means_and_names_issues(feedback: SFFeedbackClient) -> None:
    for rating, issues in [
        ("thumbs_up", ()),
        ("thumbs_down", ["outdated_info", "unclear"]),
        ("star_4", "outdated_info"),
        ("likert_2", None),
        ("free_text", ["not a code"]),
    ]:
        feedback.submit("s", "t", rating, metadata={"issues": issues})
    feedback.submit("other", "t", "star_1")
    summary = feedback.get_summary("s")
    assert summary.total_feedback == 5
    assert summary.avg_rating == (5 + 1 + 4 + 2) / 4
    assert summary.helpful_rate == 0.5
    assert (summary.thumbs_up_count, summary.thumbs_down_count, summary.free_text_count) == (1, 1, 1)
    assert summary.common_issues == ("outdated_info", "unclear")
    assert (summary.avg_star_rating, summary.avg_likert_score) == (4, 2)
    assert feedback.get_summary().total_feedback == 6
    assert feedback.get_summary("never rated").avg_rating is None
    assert feedback.cell.get().replaced == {"issues": 1}


def test_ratings_of_a_session_are_given_back_in_order_and_by_kind(feedback: SFFeedbackClient) -> None:
    feedback.submit("s", "t", "star_1")
    feedback.submit("s", "t", FeedbackRating.STAR_2)
    assert [entry["rating"] for entry in feedback.get_feedback("s")] == ["star_1", "star_2"]
    assert len(feedback.get_feedback("s", rating_filter="star_2")) == 1
    assert len(feedback.get_feedback("s", rating_filter=FeedbackRating.STAR_1)) == 1
    assert feedback.get_feedback("unknown") == []


def test_what_is_no_rating_is_recorded_as_text_and_counted(feedback: SFFeedbackClient, sink: MemorySink) -> None:
    feedback.submit("s", "t", "marvellous", user_id=object())  # type: ignore[arg-type]
    assert sink.of_type("llm.feedback.submitted")[0]["rating"] == "free_text"
    assert feedback.cell.get().replaced == {"rating": 1, "user_id": 1}


def test_a_keyword_nobody_knows_costs_only_itself(feedback: SFFeedbackClient, sink: MemorySink) -> None:
    assert len(feedback.submit("s", no_such_keyword=1)) == 26  # type: ignore[call-arg]
    assert len(feedback.get_feedback("s", no_such_keyword=1)) == 1  # type: ignore[call-arg]
    assert len(sink.of_type("llm.feedback.submitted")) == 1


def test_whatever_fails_a_rating_has_an_id_and_nothing_is_remembered(
    feedback: SFFeedbackClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise OSError

    monkeypatch.setattr(feedback, "_own_ratings", fail)
    assert len(feedback.submit("s", "t", "star_1")) == 26
    assert feedback.get_feedback("s") == []
    assert feedback.cell.get().replaced == {"submit_failed:OSError": 1, "get_feedback_failed:OSError": 1}


def test_inside_a_scope_the_session_may_be_left_out(
    client: SFRAGClient, feedback: SFFeedbackClient, sink: MemorySink
) -> None:
    with client.session("q") as session:
        feedback.submit(rating="thumbs_up")
    assert sink.of_type("llm.feedback.submitted")[0]["session_id"] == session.session_id


def test_without_any_session_a_rating_stands_by_itself(feedback: SFFeedbackClient, sink: MemorySink) -> None:
    feedback_id = feedback.submit(rating="thumbs_up")
    assert sink.of_type("llm.feedback.submitted")[0]["session_id"] == feedback_id


def test_what_is_remembered_is_bounded(feedback: SFFeedbackClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanforge.sdk.feedback._MAX_SESSIONS", 2)
    monkeypatch.setattr("spanforge.sdk.feedback._MAX_PER_SESSION", 3)
    for name in "abc":
        for _ in range(5):
            feedback.submit(name, "t", "star_1")
    assert feedback.get_status() == FeedbackStatusInfo("ok", 15, 2)
    assert len(feedback.get_feedback("c")) == 3
    assert feedback.get_feedback("a") == []


def test_and_so_are_the_bytes_of_it(feedback: SFFeedbackClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanforge.sdk.feedback._MAX_BYTES", 100_000)
    for number in range(20):
        feedback.submit(f"s{number}", "t", "star_1", metadata={f"k{n}": n for n in range(500)})
    kept = feedback.get_status().sessions_tracked
    assert 1 <= kept < 10
    assert len(feedback.get_feedback("s19")) == 1


def test_a_forked_child_remembers_nothing_of_its_parents_ratings(
    feedback: SFFeedbackClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    feedback.submit("s", "t", "star_1")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert feedback.get_feedback("s") == []


def test_disabled_it_gives_an_id_and_emits_nothing(client: SFRAGClient, feedback: SFFeedbackClient) -> None:
    client.configure(sinks=(), disabled=True)
    assert len(feedback.submit("s", "t", "star_1")) == 26
    assert feedback.get_status().total_submitted == 0
