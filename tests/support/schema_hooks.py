"""What JSON Schema cannot say of the API, told to schemathesis: loaded by its command line, not by tests."""

from __future__ import annotations

import os
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Final

import schemathesis

TEXT: Final = "Employees get 28 days of paid leave a year."
SHORT: Final = 64
MOST_TOKENS: Final = 32_000
CALLS: Final = "SCHEMA_CALLS"
"""Name of the variable that names the file in which every call is noted."""
SOURCE: Final = "SCHEMA_SOURCE"
"""Name of the variable with the id of a data source that is there."""
JOB: Final = "SCHEMA_JOB"
"""Name of the variable with the id of a job that put a document there."""
RUN: Final = "SCHEMA_RUN"
"""Name of the variable with the session id of a question that was answered."""
DOCUMENT: Final = "leave"
"""The id of that document."""


@schemathesis.hook
def filter_case(context: object, case: schemathesis.Case) -> bool:
    """Leave out overlaps of more than half the size: one field bounding another has no keyword."""
    body = case.body
    if not isinstance(body, dict):
        return True
    try:
        # In a form every value is text.
        size, overlap = float(body.get("chunkSize", 512)), float(body.get("chunkOverlap", 50))
    except (TypeError, ValueError):
        return True
    return overlap <= size // 2


class _Known:
    """Real ids, in place of every second made-up one: those alone lead to nothing but 404."""

    calls: ClassVar[Counter[str]] = Counter()
    job = os.environ.get(JOB, "")


@schemathesis.hook
def before_call(context: object, case: schemathesis.Case, kwargs: object) -> None:
    """Name a source and a job that are there, in calls that are meant to be right."""
    meta, path = case.meta, case.operation.path
    if meta is None or meta.generation.mode is not schemathesis.GenerationMode.POSITIVE:
        return
    operation = f"{case.method} {path}"
    _Known.calls[operation] += 1
    is_known = _Known.calls[operation] % 2 == 1
    if path == "/api/rag/ingest" and isinstance(case.body, dict):
        _make_readable(case.body)
        if is_known:
            case.body["dataSourceId"] = os.environ[SOURCE]
    if path == "/api/rag/query" and isinstance(case.body, dict) and len(case.body.get("query", "")) > SHORT:
        # How long a question may be is bounded by another field, in tokens.
        case.body["maxTokens"] = MOST_TOKENS
    if path == "/api/rag/ingest/{jobId}" and is_known and _Known.job:
        case.path_parameters["jobId"] = _Known.job
    if case.method == "DELETE" and case.path_parameters == {"id": os.environ[SOURCE]} and "documents" not in path:
        # With it its jobs would go.
        case.path_parameters["id"] = _Known.job
    if path == "/api/rag/sessions/{id}/feedback" and is_known:
        case.path_parameters["id"] = os.environ[RUN]
    # Steps that follow one another bring the id of what they made.
    if path == "/api/rag/sources/{id}/documents" and is_known and "stateful" not in str(meta.phase.name).lower():
        case.path_parameters["id"] = os.environ[SOURCE]
        if case.method == "DELETE":
            case.query["documentId"] = DOCUMENT


def _make_readable(body: dict[str, Any]) -> None:
    """Put text where bytes are made up: that those be a document is nothing a schema could say."""
    if "files" in body:
        # One: all that it makes have the same name, and no two files of a request may.
        body["files"] = [TEXT] * min(1, len(body["files"]))
    if "documents" in body:
        # Each id once: two objects that differ elsewhere are unique to a schema.
        body["documents"] = list({one.get("documentId"): one for one in body["documents"]}.values())
    for document in body.get("documents", []):
        if document.get("content") is not None:
            document["content"] = b64encode(TEXT.encode()).decode()


@schemathesis.hook
def after_call(context: object, case: schemathesis.Case, response: schemathesis.Response) -> None:
    """Note what was called and how it was answered."""
    method, path = case.operation.method.upper(), case.operation.path
    with Path(os.environ[CALLS]).open("a", encoding="utf-8") as file:
        file.write(f"{method} {path} {response.status_code}\n")
