"""What JSON Schema cannot say of the API, told to schemathesis: loaded by its command line, not by tests."""

from __future__ import annotations

import os
from base64 import b64encode
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import schemathesis

TEXT: Final = "Employees get 28 days of paid leave a year."
SHORT: Final = 64
MOST_TOKENS: Final = 32_000
CALLS: Final = "SCHEMA_CALLS"
"""Name of the variable that names the file in which every call is noted."""
SOURCE: Final = "SCHEMA_SOURCE"
"""Name of the variable with the id of a data source that is there."""


@schemathesis.hook
def filter_case(context: object, case: schemathesis.Case) -> bool:
    """Leave out overlaps that are not less than the size: one field bounding another has no keyword."""
    body = case.body
    if not isinstance(body, dict):
        return True
    try:
        # In a form every value is text.
        size, overlap = float(body.get("chunkSize", 512)), float(body.get("chunkOverlap", 50))
    except (TypeError, ValueError):
        return True
    return overlap < size


class _Known:
    """Real ids, in place of every second made-up one: those alone lead to nothing but 404."""

    calls = 0
    job = ""


@schemathesis.hook
def before_call(context: object, case: schemathesis.Case, kwargs: object) -> None:
    """Name a source and a job that are there, in calls that are meant to be right."""
    meta, path = case.meta, case.operation.path
    if meta is None or meta.generation.mode is not schemathesis.GenerationMode.POSITIVE:
        return
    _Known.calls += 1
    is_known = _Known.calls % 2 == 0
    if path == "/api/rag/ingest" and isinstance(case.body, dict):
        _make_readable(case.body)
        if is_known:
            case.body["dataSourceId"] = os.environ[SOURCE]
    if path == "/api/rag/query" and isinstance(case.body, dict) and len(case.body.get("query", "")) > SHORT:
        # How long a question may be is bounded by another field, in tokens.
        case.body["maxTokens"] = MOST_TOKENS
    if path == "/api/rag/ingest/{jobId}" and is_known and _Known.job:
        case.path_parameters["jobId"] = _Known.job


def _make_readable(body: dict[str, Any]) -> None:
    """Put text where bytes are made up: that those be a document is nothing a schema could say."""
    if "files" in body:
        body["files"] = [TEXT] * len(body["files"])
    for document in body.get("documents", []):
        if document.get("content") is not None:
            document["content"] = b64encode(TEXT.encode()).decode()


@schemathesis.hook
def after_call(context: object, case: schemathesis.Case, response: schemathesis.Response) -> None:
    """Note what was called and how it was answered."""
    method, path = case.operation.method.upper(), case.operation.path
    with Path(os.environ[CALLS]).open("a", encoding="utf-8") as file:
        file.write(f"{method} {path} {response.status_code}\n")
    if response.status_code == HTTPStatus.ACCEPTED:
        _Known.job = response.json()["jobId"]
