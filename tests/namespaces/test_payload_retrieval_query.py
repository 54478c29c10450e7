"""RetrievalQueryPayload: a question was asked of a retriever."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.retrieval import RetrievalQueryPayload

WHOLE: dict[str, Any] = {
    "session_id": "s",
    "query_hash": "0" * 64,
    "top_k": 3,
    "retriever_name": "r",
    "embedding_model": "e",
    "namespace": "n",
    "latency_ms": 1.5,
    "filters": {"year": 2026},
    "query_hash_alg": "hmac-sha256",
    "query_hash_key_id": "0" * 8,
    "embedding_dimensions": 384,
    "pipeline_name": "p",
}


def test_what_it_says_comes_back() -> None:
    payload = RetrievalQueryPayload(**WHOLE)
    assert RetrievalQueryPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = RetrievalQueryPayload(session_id="s", query_hash="h")
    assert None not in payload.to_dict().values()
    assert RetrievalQueryPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("session_id", ""),
        ("top_k", 0),
        ("top_k", "canary"),
        ("latency_ms", -1),
        ("latency_ms", float("inf")),
        ("embedding_dimensions", 0),
        ("filters", "canary"),
    ],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^RetrievalQueryPayload\.{field}: ") as caught:
        RetrievalQueryPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
