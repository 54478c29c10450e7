"""RAGEvaluationPayload: the run was judged."""

from __future__ import annotations

from typing import Any

import pytest

from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces.retrieval import RAGEvaluationPayload

WHOLE: dict[str, Any] = {
    "session_id": "s",
    "evaluator": "judge",
    "context_relevance": 0.1,
    "answer_relevance": 0.2,
    "faithfulness": 0.3,
    "groundedness": 0.4,
    "claims_total": 5,
    "claims_supported": 4,
    "latency_ms": 1.0,
}


def test_what_it_says_comes_back() -> None:
    payload = RAGEvaluationPayload(**WHOLE)
    assert RAGEvaluationPayload.from_dict(payload.to_dict()) == payload
    assert payload.to_dict().keys() >= WHOLE.keys()


def test_what_is_absent_is_left_out() -> None:
    payload = RAGEvaluationPayload(session_id="s")
    assert None not in payload.to_dict().values()
    assert RAGEvaluationPayload.from_dict(payload.to_dict()) == payload


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("context_relevance", 2),
        ("answer_relevance", -1),
        ("faithfulness", "canary"),
        ("groundedness", float("nan")),
        ("claims_total", -1),
        ("claims_supported", "canary"),
    ],
)
def test_an_invalid_value_is_named_and_not_repeated(field: str, value: object) -> None:
    with pytest.raises(InvalidPayloadError, match=rf"^RAGEvaluationPayload\.{field}: ") as caught:
        RAGEvaluationPayload(**{**WHOLE, field: value})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
