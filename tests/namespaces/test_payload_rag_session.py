"""RAGSessionPayload: the summary of one run."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.retrieval import RAGSessionPayload

WHOLE: dict[str, Any] = {
    "session_id": "s",
    "total_queries": 1,
    "total_chunks_used": 2,
    "total_input_tokens": 3,
    "total_output_tokens": 4,
    "avg_grounding_score": 0.5,
    "total_latency_ms": 6.0,
    "status": "partial",
    "retriever_name": "r",
    "unique_chunk_ids": ("a",),
    "chunk_ids_truncated": True,
    "min_grounding_score": 0.4,
    "grounding_count": 2,
    "duration_ms": 9.0,
    "error_count": 0,
    "started_at": "2026-01-01T00:00:00.000000Z",
    "ended_at": "2026-01-01T00:00:01.000000Z",
    "end_reason": "evicted",
    "error_type": "E",
    "partial_view": True,
}


def test_what_it_says_comes_back() -> None:
    payload = RAGSessionPayload(**WHOLE)
    assert RAGSessionPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = RAGSessionPayload(session_id="s")
    assert None not in payload.to_dict().values()
    assert RAGSessionPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "timeout"),
        ("end_reason", "canary"),
        ("avg_grounding_score", 2),
        ("error_count", -1),
        ("total_queries", "canary"),
    ],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^RAGSessionPayload\.{field}: ") as caught:
        RAGSessionPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
