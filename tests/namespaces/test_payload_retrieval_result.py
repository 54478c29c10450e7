"""RetrievalResultPayload: a retriever answered."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.retrieval import RetrievalResultPayload, RetrievedChunk

WHOLE: dict[str, Any] = {
    "session_id": "s",
    "query_hash": "h",
    "chunks": (RetrievedChunk("c", "", 0.5, "a.md"),),
    "total_found": 9,
    "latency_ms": 1.0,
    "status": "partial",
    "error_message": "TimeoutError",
    "retrieval_strategy": "multi_pass",
    "ranking_method": "rrf",
    "budget_exhausted": True,
    "ceiling_reached": "tokens",
    "score_rule": "cosine",
}


def test_what_it_says_comes_back() -> None:
    payload = RetrievalResultPayload(**WHOLE)
    assert RetrievalResultPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = RetrievalResultPayload(session_id="s")
    assert None not in payload.to_dict().values()
    assert RetrievalResultPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "canary"),
        ("retrieval_strategy", "canary"),
        ("ranking_method", "canary"),
        ("total_found", -1),
        ("chunks", "canary"),
    ],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^RetrievalResultPayload\.{field}: ") as caught:
        RetrievalResultPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
