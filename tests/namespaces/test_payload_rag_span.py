"""RAGSpanPayload: a model answered from retrieved context."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.retrieval import RAGSpanPayload

WHOLE: dict[str, Any] = {
    "session_id": "s",
    "span_name": "answer",
    "model": "m",
    "chunk_ids_used": ("a", "b"),
    "context_tokens": 1,
    "prompt_tokens": 2,
    "output_tokens": 3,
    "latency_ms": 4.0,
    "status": "error",
    "grounding_score": 0.5,
    "error_message": "E",
    "provider": "p",
    "finish_reason": "stop",
    "time_to_first_token_ms": 0.5,
}


def test_what_it_says_comes_back() -> None:
    payload = RAGSpanPayload(**WHOLE)
    assert RAGSpanPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = RAGSpanPayload(session_id="s")
    assert None not in payload.to_dict().values()
    assert RAGSpanPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", ""),
        ("grounding_score", 1.1),
        ("grounding_score", "canary"),
        ("status", "partial"),
        ("prompt_tokens", -1),
        ("prompt_tokens", "5"),
        ("latency_ms", "5"),
        ("latency_ms", 1e16),
        ("grounding_score", b"1"),
        ("time_to_first_token_ms", -1),
    ],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^RAGSpanPayload\.{field}: ") as caught:
        RAGSpanPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
