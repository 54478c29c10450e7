"""RerankPayload: retrieved chunks were put in a new order."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.retrieval import RerankPayload, RetrievedChunk

WHOLE: dict[str, Any] = {
    "session_id": "s",
    "model": "m",
    "input_count": 9,
    "output_count": 3,
    "chunks": (RetrievedChunk("c"),),
    "latency_ms": 1.0,
    "status": "ok",
    "error_message": "E",
    "score_rule": "logistic",
}


def test_what_it_says_comes_back() -> None:
    payload = RerankPayload(**WHOLE)
    assert RerankPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = RerankPayload(session_id="s", model="m")
    assert None not in payload.to_dict().values()
    assert RerankPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [("model", ""), ("input_count", -1), ("output_count", "canary"), ("status", "canary")],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^RerankPayload\.{field}: ") as caught:
        RerankPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
