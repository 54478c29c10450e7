"""FeedbackSubmittedPayload: somebody rated an answer."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.feedback import FeedbackRating, FeedbackSubmittedPayload

WHOLE: dict[str, Any] = {
    "feedback_id": "f",
    "session_id": "s",
    "trace_id": "t",
    "rating": "star_4",
    "comment_hash": "0" * 64,
    "user_id_hash": "1" * 64,
    "source": "api",
    "metadata": {"page": 1},
    "value": 0.75,
    "issues": ("outdated_info",),
}


def test_what_it_says_comes_back() -> None:
    payload = FeedbackSubmittedPayload(**WHOLE)
    assert FeedbackSubmittedPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = FeedbackSubmittedPayload(feedback_id="f", session_id="s", trace_id="", rating=FeedbackRating.FREE_TEXT)
    assert None not in payload.to_dict().values()
    assert FeedbackSubmittedPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [("rating", "canary"), ("feedback_id", ""), ("value", 2)],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^FeedbackSubmittedPayload\.{field}: ") as caught:
        FeedbackSubmittedPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
