"""Every attribute, as the published constants and checkers of each convention know it."""

from __future__ import annotations

import importlib
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from openinference.semconv import trace as openinference_constants
from openinference.semconv.trace import OpenInferenceLLMProviderValues
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.trace import SpanKind
from support.golden import VARIANTS, Recorder, generated
from support.sessions import SLOW_TO_DRAW, sessions

from spanforge.namespaces import providers
from spanforge.namespaces.event import Event
from spanforge.namespaces.providers import well_known
from spanforge.standards import aitf, genai, openinference
from spanforge.standards.tree.session import Session
from spanforge.standards.tree.spans import GENAI_NAMES, Span, merged, spans

checker = importlib.import_module("pytest_genai_semconv")
spec = importlib.import_module("pytest_genai_semconv.spec")

KNOWN_TO_GENAI = {
    value
    for module in (gen_ai_attributes, error_attributes)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
} | set(spec.ATTRIBUTE_TYPES)
# Of 0.1, where the packages have the name before it.
KNOWN_TO_GENAI |= {"gen_ai.usage.cache_write.input_tokens"}
TYPES = {"string": str, "int": int, "double": float, "boolean": bool, "string[]": tuple}


def finished(session: Session) -> tuple[Span, ...]:
    return spans(session, genai.ATTRIBUTES_WITH_DOCUMENTS, names=GENAI_NAMES)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_case_passes(variant: str):
    check(Session(VARIANTS[variant]()))


@settings(SLOW_TO_DRAW, max_examples=25)
@given(sessions())
def test_any_session_passes(events: list[Event]):
    check(Session(events))


def check(session: Session) -> None:
    every_genai_attribute_is_in_the_registry_with_that_type(session)
    every_span_with_an_operation_passes_the_checker(session)
    every_openinference_attribute_is_a_constant_of_its_package(session)


def every_genai_attribute_is_in_the_registry_with_that_type(session: Session) -> None:
    for span in finished(session):
        for key, value in span.attributes.items():
            assert key in KNOWN_TO_GENAI
            if (kind := spec.ATTRIBUTE_TYPES.get(key, "any")) != "any":
                assert type(value) is TYPES[kind], key


def every_span_with_an_operation_passes_the_checker(session: Session) -> None:
    for span in finished(session):
        if "gen_ai.operation.name" in span.attributes:
            # A provider that nobody named is `unknown`, which is a value of our own, as the conventions allow.
            said = {key: value for key, value in span.attributes.items() if value != "unknown"}
            said.setdefault("gen_ai.provider.name", "openai")
            checked = SimpleNamespace(name=span.name, kind=SpanKind[span.kind], attributes=said)
            checker.assert_genai_span_compliant(checked)
            assert span.name.startswith(str(said["gen_ai.operation.name"]))


def test_the_names_of_genai_are_a_choice():
    session = Session(VARIANTS["plain"]())
    theirs = {span.name: span.kind for span in spans(session, names=GENAI_NAMES)}
    ours = {span.name: span.kind for span in spans(session)}
    assert theirs["invoke_workflow knowledge-base"] == theirs["retrieval pinecone"] == "INTERNAL"
    assert (ours["rag.pipeline knowledge-base"], ours["rag.retrieve pinecone"]) == ("INTERNAL", "CLIENT")


@pytest.mark.parametrize(
    ("given_name", "known"),
    [
        ("OpenAI", "openai"),
        ("Azure OpenAI", "azure.ai.openai"),
        ("azure-openai", "azure.ai.openai"),
        ("bedrock", "aws.bedrock"),
        ("Google Vertex", "gcp.vertex_ai"),
        ("mistralai", "mistral_ai"),
        ("xAI", "x_ai"),
        ("azure.ai.openai", "azure.ai.openai"),
        ("My Own Server", "My Own Server"),
        ("", None),
        (None, None),
    ],
)
def test_providers_have_their_well_known_names(given_name: str | None, known: str | None):
    assert well_known(given_name) == known


def test_every_well_known_name_is_one():
    assert set(providers._PROVIDERS.values()) <= spec.PROVIDER_NAMES
    assert {name for name in spec.PROVIDER_NAMES if well_known(name) == name} == spec.PROVIDER_NAMES


@pytest.mark.parametrize("name", sorted(spec.PROVIDER_NAMES - {"ibm.watsonx.ai"}))
def test_openinference_knows_every_provider_by_its_own_name(name: str):
    """Of watsonx alone it knows nothing, and gets the name as it is."""
    run = Recorder("s")
    run.add(1, generated("s", provider=name))
    (span,) = spans(Session(run.events), openinference.ATTRIBUTES)
    assert span.attributes["llm.provider"] in {each.value for each in OpenInferenceLLMProviderValues}


def _constants() -> set[str]:
    """Every attribute of OpenInference, alone and as a member of a list."""
    classes = [value for value in vars(openinference_constants).values() if isinstance(value, type)]
    alone = {
        value for each in classes for name, value in vars(each).items() if name.isupper() and isinstance(value, str)
    }
    lists = {"retrieval.documents", "reranker.input_documents", "reranker.output_documents"}
    members = {f"{each}.N.{name}" for each in lists for name in alone if name.startswith("document.")}
    for scope in ("", "trace.", "session."):
        members |= {f"{scope}evaluations.N.{name}" for name in alone if name.startswith("evaluation.")}
        members |= {f"{scope}annotations.N.{name}" for name in alone if name.startswith("annotation.")}
    return alone | members


def every_openinference_attribute_is_a_constant_of_its_package(session: Session) -> None:
    known = _constants()
    for span in spans(session, openinference.ATTRIBUTES_WITH_USER):
        for key in span.attributes:
            assert re.sub(r"\.\d+\.", ".N.", key) in known


STAGES = {"retrieve": 1, "rerank": 5, "generate": 99, "evaluate": 99}
"""The activity that AITF's mappers make of a stage (February and July 2026); 1 is a vector search, and the default."""


@SLOW_TO_DRAW
@given(sessions())
def test_aitfs_mappers_see_a_search_where_there_was_one(events: list[Event]):
    for span in spans(Session(events), merged(aitf.ATTRIBUTES_AND_LATER, genai.ATTRIBUTES)):
        if not span.name.startswith("rag."):
            continue
        for stage, database in (
            ("aitf.rag.pipeline.stage", "aitf.rag.retrieve.database"),
            ("rag.pipeline.stage", "gen_ai.data_source.id"),
        ):
            activity = STAGES.get(str(span.attributes[stage]), 99)
            assert (activity == 1) == span.name.startswith("rag.retrieve") == (database in span.attributes)
            assert (activity == 5) == span.name.startswith("rag.rerank")


def test_what_aitf_does_not_know_is_named_outside_of_its_namespace():
    names = [span.name for span in spans(Session(VARIANTS["rich"]()))]
    assert names[-2:] == ["escalate low-grounding", "feedback star_2"]


def test_aitfs_retrieval_carries_what_its_event_is_made_of():
    [retrieval] = [
        span
        for span in spans(Session(VARIANTS["plain"]()), merged(aitf.ATTRIBUTES_AND_LATER, genai.ATTRIBUTES))
        if span.name.startswith("rag.retrieve")
    ]
    said = retrieval.attributes
    for prefix in ("aitf.", ""):
        assert said[f"{prefix}rag.pipeline.name"] == "knowledge-base"
        assert said[f"{prefix}rag.query.embedding_model"] == "text-embedding-3-small"
        assert said[f"{prefix}rag.retrieve.results_count"] == 3
    assert said["gen_ai.request.top_k"] == said["aitf.rag.retrieve.top_k"] == 3
    assert "gen_ai.retrieval.query.text" not in said
