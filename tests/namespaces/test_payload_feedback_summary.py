"""FeedbackSummaryPayload: what the ratings of a session come to."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.feedback import FeedbackSummaryPayload

WHOLE: dict[str, Any] = {
    "session_id": "s",
    "total_feedback": 3,
    "thumbs_up_count": 1,
    "thumbs_down_count": 1,
    "avg_rating": 3.0,
    "helpful_rate": 0.5,
    "free_text_count": 1,
    "counts": {"thumbs_up": 1},
    "common_issues": ("unclear",),
    "avg_star_rating": 4.0,
    "avg_likert_score": 2.0,
}


def test_what_it_says_comes_back() -> None:
    payload = FeedbackSummaryPayload(**WHOLE)
    assert FeedbackSummaryPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = FeedbackSummaryPayload(session_id="s")
    assert None not in payload.to_dict().values()
    assert FeedbackSummaryPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [("total_feedback", -1), ("helpful_rate", 1.5), ("counts", "canary")],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^FeedbackSummaryPayload\.{field}: ") as caught:
        FeedbackSummaryPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
