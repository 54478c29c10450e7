"""The OpenAPI document says all that the server does, with examples that work."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel
from support.api import PARIS, Api, running

from spanforge.server.auth.permissions import ANYONE, TABLE
from spanforge.server.models import (
    FeedbackRequest,
    IngestRequest,
    ProblemDocument,
    QueryRequest,
    RetrieveRequest,
    SharingRequest,
    SourceRequest,
)
from spanforge.server.problems import KINDS

_MODELS: dict[str, type[BaseModel]] = {
    model.__name__: model
    for model in (FeedbackRequest, IngestRequest, QueryRequest, RetrieveRequest, SharingRequest, SourceRequest)
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with running(tmp_path_factory.mktemp("home")) as api:
        yield api, api.client.get("/openapi.json").json()


def _operations(document):
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield (method.upper(), path), operation


def test_every_route_is_there(opened) -> None:
    _, document = opened
    assert {route for route, _ in _operations(document)} == set(TABLE) - {("GET", "/openapi.json"), ("GET", "/docs")}


def test_every_reference_leads_somewhere(opened) -> None:
    _, document = opened
    text = json.dumps(document)
    schemas = document["components"]["schemas"]
    for target in {part.split('"')[0] for part in text.split('"$ref": "')[1:]}:
        assert target.removeprefix("#/components/schemas/") in schemas, target
    assert "HTTPValidationError" not in text


def test_every_operation_is_described(opened) -> None:
    _, document = opened
    for route, operation in _operations(document):
        assert operation["summary"]
        assert operation["description"]
        assert ("security" in operation) is (TABLE[route] is not ANYONE)
        assert any(status.startswith("2") for status in operation["responses"])
        if route[0] == "POST":
            assert operation["requestBody"]["required"]


def test_every_problem_is_declared_with_its_status(opened) -> None:
    _, document = opened
    declared = set()
    for _, operation in _operations(document):
        for status, answer in operation["responses"].items():
            for code, example in (
                answer.get("content", {}).get("application/problem+json", {}).get("examples", {}).items()
            ):
                declared.add(code)
                assert KINDS[code].status == int(status)
                ProblemDocument.model_validate(example["value"])
    assert declared | {"METHOD_NOT_ALLOWED"} == set(KINDS)


def test_examples_are_of_their_form(opened) -> None:
    _, document = opened
    for _, operation in _operations(document):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is not None:
            name = content["schema"]["$ref"].rpartition("/")[2]
            _MODELS[name].model_validate_json(json.dumps(content["example"]))


def test_models_that_may_be_asked_for_are_those_at_work(opened) -> None:
    api, document = opened
    headers = api.key()
    source = api.source(headers)
    schemas = document["components"]["schemas"]
    (embedder, _), (reranker, _), (model, _) = (
        schemas[name]["properties"][field]["enum"]
        for name, field in (
            ("IngestRequest", "embeddingModel"),
            ("QueryRequest", "rerankModel"),
            ("QueryRequest", "model"),
        )
    )
    sent = api.send(headers, source, {"paris": PARIS}, embeddingModel=embedder)
    assert sent.status_code == 202
    api.ended(headers, sent.json()["jobId"])
    assert api.query(headers, rerankModel=reranker, model=model).json()["answer"] == "Paris [1]"
    assert api.send(headers, source, {"paris": PARIS}, embeddingModel="other").status_code == 422


def test_it_holds_nothing_of_an_organisation(api: Api) -> None:
    before = api.client.get("/openapi.json").content
    headers = api.key()
    api.ingest(headers, api.source(headers), {"paris": PARIS})
    assert api.client.get("/openapi.json").content == before


def test_bounds_are_in_words_of_json_schema(opened) -> None:
    _, document = opened
    assert not {"ge", "le", "gt", "lt"} & _keywords(document["components"]["schemas"])


def _keywords(node: object) -> set[str]:
    """Return every key of the schemas but the names of properties."""
    if isinstance(node, dict):
        below = [_keywords(value) for key, value in node.items() if key != "properties"]
        below += [_keywords(value) for value in node.get("properties", {}).values()]
        return set(node).union(*below)
    return set().union(*map(_keywords, node)) if isinstance(node, list) else set()


def test_answers_lead_to_operations_that_there_are(opened) -> None:
    _, document = opened
    operations = [one for _, one in _operations(document)]
    answers = [answer for one in operations for answer in one["responses"].values()]
    links = [link for answer in answers for link in answer.get("links", {}).values()]
    assert {link["operationId"] for link in links} <= {one["operationId"] for one in operations}
    assert len(links) == 7
