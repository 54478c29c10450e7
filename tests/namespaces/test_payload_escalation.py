"""EscalationPayload: a rule or a person asks for a human."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.retrieval import EscalationPayload

WHOLE: dict[str, Any] = {
    "session_id": "s",
    "rule": "low-grounding",
    "trigger": "grounding",
    "level": 2,
    "value": 0.2,
    "threshold": 0.5,
}


def test_what_it_says_comes_back() -> None:
    payload = EscalationPayload(**WHOLE)
    assert EscalationPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = EscalationPayload(session_id="s", rule="r")
    assert None not in payload.to_dict().values()
    assert EscalationPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rule", ""),
        ("trigger", "canary"),
        ("level", 0),
        ("level", 4),
        ("value", float("nan")),
        ("threshold", float("inf")),
    ],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^EscalationPayload\.{field}: ") as caught:
        EscalationPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
