"""What an application chooses of the spans it sends: their names, whose they are, and what is held back."""

from __future__ import annotations

import pytest
from support.golden import VARIANTS
from support.otlp_receiver import http_receiver

from spanforge.exceptions import ConfigError
from spanforge.sinks.otlp import OtlpSink


def sent(variant: str, **choices: object) -> list:
    with http_receiver() as received:
        sink = OtlpSink(f"http://{received.address}", signals=(), **choices)
        sink.write(VARIANTS[variant]())
        sink.close()
        return list(received.spans)


def keys(spans: list) -> set[str]:
    return {attribute.key for span in spans for attribute in span.attributes}


def test_names_are_those_of_aitf_or_of_genai():
    assert "rag.retrieve pinecone" in {span.name for span in sent("plain")}
    names = {span.name for span in sent("plain", span_names="genai")}
    assert {"invoke_workflow knowledge-base", "retrieval pinecone"} <= names
    with pytest.raises(ConfigError, match="span_names"):
        OtlpSink("http://localhost", span_names="other")


def test_users_are_named_only_where_that_is_allowed():
    assert "user.id" not in keys(sent("rich"))
    users = {
        a.value.string_value for span in sent("rich", user_ids=True) for a in span.attributes if a.key == "user.id"
    }
    assert users == {"user-7"}


def test_hidden_outputs_take_every_copy_of_the_documents_along(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENINFERENCE_HIDE_OUTPUTS", "true")
    spans = sent("rich", genai_documents=True)
    assert not any(span.events for span in spans)
    assert not any("document" in key or key.endswith("retrieval.docs") for key in keys(spans))
    assert not any("chunk-" in str(span) for span in spans)
    assert "output.value" in keys(spans)


def test_hidden_inputs_take_what_a_rerank_was_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENINFERENCE_HIDE_INPUTS", "true")
    found = keys(sent("rich"))
    assert not any(key.startswith("reranker.input_documents") for key in found)
    assert any(key.startswith("reranker.output_documents") for key in found)
