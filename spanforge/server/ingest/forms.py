"""What an ingestion request brings, as JSON or as files: options, and documents that are made one at a time."""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from spanforge.reference import Document
from spanforge.reference.failures import RagFailure
from spanforge.server.bodies import JSON, MULTIPART, invalid, json_body, media_type
from spanforge.server.ingest.sniffing import sniff
from spanforge.server.models import MAX_DOCUMENTS, CutOptions, IngestRequest
from spanforge.server.problems import Problem, problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping

    from fastapi import Request

    from spanforge.server.models import DocumentBody

_FILES: Final = "files"
_MAX_FIELDS: Final = 16
_MAX_FIELD_BYTES: Final = 4_096
_MAX_NAME: Final = 200


@asynccontextmanager
async def upload_of(request: Request, max_depth: int) -> AsyncGenerator[tuple[CutOptions, Iterator[Document]]]:
    """Read a body, and hold its files for the length of a block.

    Files stay on the disk until their document is asked for, so that an upload takes the memory of its longest file.

    Raises:
        Problem: The body is of another media type, or not of its form.
        Problem: (from the documents) One, which is named by its place, is of no kind that can be read.
    """
    match media_type(request):
        case "application/json":
            body = await json_body(request, IngestRequest, max_depth)
            _check_ids(body)
            yield body, _named("documents", (partial(_document, one) for one in body.documents))
        case "multipart/form-data":
            form_limits = {"max_files": MAX_DOCUMENTS, "max_fields": _MAX_FIELDS, "max_part_size": _MAX_FIELD_BYTES}
            async with request.form(**form_limits) as form:
                files = _files(form)
                yield _options(form), _named(_FILES, (partial(_file, *one) for one in files.items()))
        case _:
            raise Problem("UNSUPPORTED_MEDIA_TYPE", f"Send the body as {JSON} or {MULTIPART}.")


def _check_ids(body: IngestRequest) -> None:
    seen: set[str] = set()
    for number, document in enumerate(body.documents):
        if document.document_id in seen:
            place = f"documents.{number}.documentId"
            raise Problem(
                "INVALID_INPUT", f"{place}: is the id of an earlier document of this request.", fields=(place,)
            )
        seen.add(document.document_id)


def _named(field: str, makers: Iterable[Callable[[], Document]]) -> Iterator[Document]:
    """Make documents one at a time; where one cannot be, say which."""
    for number, make in enumerate(makers):
        place = f"{field}.{number}"
        problem: Problem
        try:
            document = make()
        except RagFailure as failure:
            known = problem_of(failure)
            problem = Problem(known.code, f"{place}: {known.detail or failure.remedy}", fields=(place,))
        else:
            yield document
            continue
        raise problem


def _document(body: DocumentBody) -> Document:
    content = None if body.content is None else base64.b64decode(body.content, validate=True)
    return Document(
        document_id=body.document_id,
        text=body.text,
        content=content,
        name=body.name,
        media_type="" if content is None else sniff(content, body.name or body.document_id),
        timestamp=body.timestamp,
        quality=body.quality,
        metadata=dict(body.metadata),
    )


def _file(name: str, file: UploadFile) -> Document:
    content = file.file.read()
    return Document(document_id=name, content=content, name=name, media_type=sniff(content, name))


def _files(form: FormData) -> Mapping[str, UploadFile]:
    """Return the files by the ids of their documents, which are their names with the folders that stand in them."""
    files: dict[str, UploadFile] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            known_as = _plain(value.filename or "")
            if name != _FILES or not known_as:
                raise Problem("INVALID_INPUT", "files: send files under this name, each with a name.", fields=(_FILES,))
            if known_as in files:
                place = f"{_FILES}.{len(files)}"
                detail = f"{place}: has the name of an earlier file of this request; give each a name of its own."
                raise Problem("INVALID_INPUT", detail, fields=(place,))
            files[known_as] = value
    if not files:
        raise Problem("INVALID_INPUT", "files: at least one file is required.", fields=(_FILES,))
    return files


def _options(form: FormData) -> CutOptions:
    fields: dict[str, str] = {}
    for name, value in form.multi_items():
        if isinstance(value, str):
            if name in fields:
                raise Problem("INVALID_INPUT", "A field is given twice.")
            fields[name] = value
    problem: Problem
    try:
        return CutOptions.model_validate_strings(fields)
    except ValidationError as error:
        # The error carries the input: only names and rules leave this block.
        problem = invalid(error, CutOptions)
    raise problem


def _plain(name: str) -> str:
    """Return a file's name with its folders, but without steps upwards and what cannot be printed."""
    printable = "".join(char if char.isprintable() else " " for char in name.replace("\\", "/"))
    steps = (step.strip() for step in printable.split("/"))
    return "/".join(step for step in steps if step not in {"", ".", ".."})[-_MAX_NAME:]
