"""The OpenAPI document: what the routes declare, with the bodies they read themselves and every problem they answer.

It is made from the models and tables that the server works by, and says nothing that they do not.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from spanforge.server.auth.permissions import ANYONE, TABLE
from spanforge.server.bodies import JSON, MULTIPART
from spanforge.server.ingest.sniffing import DOCX, HTML, PDF, PLAIN
from spanforge.server.models import (
    MAX_DOCUMENTS,
    FeedbackRequest,
    IngestRequest,
    ProblemDocument,
    QueryRequest,
    RetrieveRequest,
    SharingRequest,
    SourceRequest,
)
from spanforge.server.problems import KINDS, MEDIA_TYPE, Problem
from spanforge.server.streaming import MEDIA_TYPE as EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fastapi import FastAPI
    from pydantic import BaseModel

_REF: Final = "#/components/schemas/{model}"
_EVERYWHERE: Final = ("BAD_REQUEST", "WRONG_HOST", "INTERNAL_ERROR")
_ADMITTED: Final = ("UNAUTHENTICATED", "FORBIDDEN", "RATE_LIMITED", "IDENTITY_UNAVAILABLE")
_WORKING: Final = ("TOO_MANY_AT_ONCE", "OVERLOADED", "TIMED_OUT", "INDEX_UNAVAILABLE", "EMBEDDING_FAILED")
_READING: Final = ("BODY_TIMEOUT", "TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "INVALID_INPUT")
_ANSWERING: Final = (
    "CONTEXT_OVERFLOW", "TEMPLATE_ERROR", "GROUNDING_FAILED", "INSUFFICIENT_CONTEXT", "NOT_GROUNDED",
    "GENERATION_FAILED",
)  # fmt: skip

_CODES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("POST", "/api/rag/ingest"): (
        *_WORKING, *_READING, "NOT_FOUND", "PERMISSION_DENIED", "UNSUPPORTED_FORMAT", "PARSE_ERROR", "INDEX_FULL",
        "TOO_MANY_JOBS",
    ),
    ("GET", "/api/rag/ingest/{jobId}"): (*_WORKING, "NOT_FOUND"),
    ("DELETE", "/api/rag/ingest/{jobId}"): (*_WORKING, "NOT_FOUND"),
    ("GET", "/api/rag/sources"): _WORKING,
    ("POST", "/api/rag/sources"): (*_WORKING, *_READING),
    ("DELETE", "/api/rag/sources/{id}"): (*_WORKING, "NOT_FOUND", "PERMISSION_DENIED"),
    ("PATCH", "/api/rag/sources/{id}"): (*_WORKING, *_READING, "NOT_FOUND", "PERMISSION_DENIED"),
    ("GET", "/api/rag/sources/{id}/documents"): (*_WORKING, "INVALID_INPUT", "NOT_FOUND"),
    ("DELETE", "/api/rag/sources/{id}/documents"): (*_WORKING, "INVALID_INPUT", "NOT_FOUND", "PERMISSION_DENIED"),
    ("POST", "/api/rag/query"): (*_WORKING, *_READING, "NO_ACCESSIBLE_SOURCES", *_ANSWERING),
    ("POST", "/api/rag/retrieve"): (*_WORKING, *_READING, "NO_ACCESSIBLE_SOURCES"),
    ("POST", "/api/rag/sessions/{id}/feedback"): (*_WORKING, *_READING, "NOT_FOUND"),
    ("GET", "/metrics"): (),
    ("GET", "/healthz"): (),
    ("GET", "/readyz"): ("OVERLOADED",),
}  # fmt: skip
"""Problems of each route beside those of all."""

_BODIES: Final[Mapping[tuple[str, str], type[BaseModel]]] = {
    ("POST", "/api/rag/ingest"): IngestRequest,
    ("POST", "/api/rag/sources"): SourceRequest,
    ("PATCH", "/api/rag/sources/{id}"): SharingRequest,
    ("POST", "/api/rag/query"): QueryRequest,
    ("POST", "/api/rag/retrieve"): RetrieveRequest,
    ("POST", "/api/rag/sessions/{id}/feedback"): FeedbackRequest,
}
_EXAMPLES: Final[Mapping[str, dict[str, Any]]] = {
    "IngestRequest": {
        "dataSourceId": "01JDQ7T4M8YB3R8V5J3N2K6XWE",
        "documents": [{"documentId": "leave.md", "text": "# Leave\n\nEmployees get 28 days of paid leave a year."}],
    },
    "FeedbackRequest": {"rating": "thumbs_down", "issues": ["outdated_info"], "comment": "This was so until May."},
    "SharingRequest": {"visibility": "role", "roles": ["auditor"]},
    "SourceRequest": {"name": "Handbook", "visibility": "team", "teams": ["people"]},
    "QueryRequest": {"query": "How many days of paid leave do employees get?", "topK": 5, "strictMode": True},
    "RetrieveRequest": {
        "query": "paid leave",
        "filters": [{"field": "quality", "op": "ge", "value": 0.5}],
        "rerank": False,
    },
}
_FILES: Final[dict[str, Any]] = {
    "type": "array",
    "minItems": 1,
    "maxItems": MAX_DOCUMENTS,
    "items": {"type": "string", "format": "binary"},
    "description": "Files. The name of a file, with its folders, is its document's id; each needs one of its own.",
}
_READABLE: Final = (PLAIN, "text/markdown", HTML, "text/csv", PDF, DOCX)
"""What an upload may hold; each file is judged by its content."""
_EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["token", "citations", "result", "error"]},
        "data": {"type": "string", "contentMediaType": JSON},
    },
}
_STREAM: Final = (
    'event: token\ndata: {"text": "28 "}\n\nevent: citations\ndata: [{"number": 1}]\n\n'
    'event: result\ndata: {"answer": "28 days [1]"}\n\n'
)
_LINKS: Final[Mapping[tuple[str, str], tuple[str, Mapping[str, tuple[tuple[str, str], str, Any]]]]] = {
    ("POST", "/api/rag/sources"): (
        "201",
        {
            "ingest": (("POST", "/api/rag/ingest"), "requestBody", {"dataSourceId": "$response.body#/id"}),
            "query": (("POST", "/api/rag/query"), "requestBody", {"dataSources": ["$response.body#/id"]}),
            "retrieve": (("POST", "/api/rag/retrieve"), "requestBody", {"dataSources": ["$response.body#/id"]}),
            "delete": (("DELETE", "/api/rag/sources/{id}"), "parameters", {"id": "$response.body#/id"}),
        },
    ),
    ("POST", "/api/rag/query"): (
        "200",
        {
            "feedback": (
                ("POST", "/api/rag/sessions/{id}/feedback"),
                "parameters",
                {"id": "$response.body#/sessionId"},
            ),
        },
    ),
    ("POST", "/api/rag/ingest"): (
        "202",
        {
            "follow": (("GET", "/api/rag/ingest/{jobId}"), "parameters", {"jobId": "$response.body#/jobId"}),
            "cancel": (("DELETE", "/api/rag/ingest/{jobId}"), "parameters", {"jobId": "$response.body#/jobId"}),
        },
    ),
}
"""Where an answer leads: by status, the routes that take what is in it, and what of it."""
_HEADERS: Final[Mapping[int, str]] = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}


def describe(app: FastAPI, modes: Mapping[str, str]) -> dict[str, Any]:
    """Return the document.

    Args:
        app: The application.
        modes: Names of the models at work, from `Pipeline.modes`: the only ones that may be asked for.
    """
    document = get_openapi(
        title=app.title, version=app.version, summary=app.summary, description=app.description, routes=app.routes
    )
    schemas = document["components"]["schemas"] = _schemas(document["components"]["schemas"], modes)
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An API key (`sf_…`), or a token of the issuer."}
    }
    for path, operations in document["paths"].items():
        for name, operation in operations.items():
            _complete(operation, (name.upper(), path), schemas)
    _link(document["paths"])
    del schemas["HTTPValidationError"], schemas["ValidationError"]
    return document


def _schemas(declared: dict[str, Any], modes: Mapping[str, str]) -> dict[str, Any]:
    wanted = (*_BODIES.values(), ProblemDocument)
    _, found = models_json_schema([(model, "validation") for model in wanted], ref_template=_REF)
    schemas = {**declared, **found["$defs"]}
    for name, field, mode in (
        ("IngestRequest", "embeddingModel", "embedder"),
        ("RetrieveRequest", "rerankModel", "reranker"),
        ("QueryRequest", "rerankModel", "reranker"),
        ("QueryRequest", "model", "answerer"),
    ):
        schemas[name]["properties"][field] = {"enum": [modes[mode], None], "default": None}
    schemas["DocumentBody"]["oneOf"] = [
        {"required": [given], "properties": {given: {"type": "string"}, other: {"type": "null"}}}
        for given, other in (("text", "content"), ("content", "text"))
    ]
    return schemas


def _complete(operation: dict[str, Any], route: tuple[str, str], schemas: Mapping[str, Any]) -> None:
    is_open = TABLE[route] is ANYONE
    if not is_open:
        operation["security"] = [{"bearer": []}]
        roles = ", ".join(sorted(TABLE[route]))
        operation["description"] = f"{operation.get('description', '')}\n\nRoles: {roles}."
    body = _BODIES.get(route)
    if body is not None:
        operation["requestBody"] = _request_body(body, schemas[body.__name__])
    responses = {status: answer for status, answer in operation["responses"].items() if status != "422"}
    responses.update(_problems((*_EVERYWHERE, *(() if is_open else _ADMITTED), *_CODES[route])))
    operation["responses"] = responses
    if body is QueryRequest:
        responses["200"]["content"][EVENTS] = {"itemSchema": _EVENT, "example": _STREAM}


def _link(paths: dict[str, Any]) -> None:
    for (method, path), (status, links) in _LINKS.items():
        paths[path][method.lower()]["responses"][status]["links"] = {
            name: {"operationId": paths[target][verb.lower()]["operationId"], part: given}
            for name, ((verb, target), part, given) in links.items()
        }


def _request_body(body: type[BaseModel], schema: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {
        JSON: {"schema": {"$ref": _REF.format(model=body.__name__)}, "example": _EXAMPLES[body.__name__]}
    }
    if body is IngestRequest:
        content[MULTIPART] = _upload(schema)
    return {"required": True, "content": content}


def _upload(ingest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form of an upload: the fields of the JSON body, with files in place of its documents."""
    fields = {name: schema for name, schema in ingest["properties"].items() if name != "documents"}
    # A form has no null: what is not meant is left out.
    fields["embeddingModel"] = {"enum": [name for name in fields["embeddingModel"]["enum"] if name is not None]}
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["dataSourceId", "files"],
        "additionalProperties": False,
        "properties": {**fields, "files": _FILES},
    }
    return {"schema": schema, "encoding": {"files": {"contentType": ", ".join(_READABLE)}}}


def _problems(codes: Iterable[str]) -> dict[str, Any]:
    by_status: defaultdict[int, list[str]] = defaultdict(list)
    for code in codes:
        by_status[KINDS[code].status].append(code)
    return {str(status): _problem(status, found) for status, found in sorted(by_status.items())}


def _problem(status: int, codes: list[str]) -> dict[str, Any]:
    examples = {
        code: {"value": {**Problem(code).document(), "instance": "urn:spanforge:request:01JDQ7T4M8YB3R8V5J3N2K6XWE"}}
        for code in codes
    }
    schema = {"$ref": _REF.format(model="ProblemDocument")}
    answer: dict[str, Any] = {
        "description": ", ".join(codes),
        "content": {MEDIA_TYPE: {"schema": schema, "examples": examples}},
    }
    if status in _HEADERS:
        answer["headers"] = {_HEADERS[status]: {"schema": {"type": "string"}}}
    return answer
