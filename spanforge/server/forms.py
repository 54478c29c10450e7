"""What an ingestion request brings, as JSON or as files: options, and documents that are made one at a time."""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from spanforge.reference import Document
from spanforge.reference.parsing import media_type_of
from spanforge.reference.parsing.unfolding import check_html
from spanforge.server.bodies import JSON, MULTIPART, invalid, json_body, media_type
from spanforge.server.models import MAX_DOCUMENTS, CutOptions, IngestRequest
from spanforge.server.problems import Problem
from spanforge.server.sniffing import HTML, sniff

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from fastapi import Request

    from spanforge.reference.parsing import Limits
    from spanforge.server.models import DocumentBody

_FILES: Final = "files"
_MAX_FIELDS: Final = 16
_MAX_FIELD_BYTES: Final = 4_096
_MAX_NAME: Final = 200


@asynccontextmanager
async def upload_of(
    request: Request, max_depth: int, limits: Limits
) -> AsyncGenerator[tuple[CutOptions, Iterator[Document]]]:
    """Read a body, and hold its files for the length of a block.

    Files stay on the disk until their document is asked for, so that an upload takes the memory of its longest file.

    Raises:
        Problem: The body is of another media type, or not of its form.
        UnsupportedFormat: (from the documents) One is of no kind that can be read.
        ParseError: (from the documents) One is a damaged archive, or one that unfolds without measure.
    """
    match media_type(request):
        case "application/json":
            body = await json_body(request, IngestRequest, max_depth)
            yield body, (_document(one, limits) for one in body.documents)
        case "multipart/form-data":
            form_limits = {"max_files": MAX_DOCUMENTS, "max_fields": _MAX_FIELDS, "max_part_size": _MAX_FIELD_BYTES}
            async with request.form(**form_limits) as form:
                files = _files(form)
                yield _options(form), (_file(name, file, limits) for name, file in files.items())
        case _:
            raise Problem("UNSUPPORTED_MEDIA_TYPE", f"Send the body as {JSON} or {MULTIPART}.")


def _document(body: DocumentBody, limits: Limits) -> Document:
    content = None if body.content is None else base64.b64decode(body.content, validate=True)
    if body.text is not None and media_type_of(body.name) == HTML:
        check_html(body.text.encode(), limits)
    return Document(
        document_id=body.document_id,
        text=body.text,
        content=content,
        name=body.name,
        media_type="" if content is None else sniff(content, body.name or body.document_id, limits),
        timestamp=body.timestamp,
        quality=body.quality,
        metadata=dict(body.metadata),
    )


def _file(name: str, file: UploadFile, limits: Limits) -> Document:
    content = file.file.read()
    return Document(document_id=name, content=content, name=name, media_type=sniff(content, name, limits))


def _files(form: FormData) -> Mapping[str, UploadFile]:
    """Return the files by the ids of their documents, which are their names."""
    files: dict[str, UploadFile] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            known_as = _plain(value.filename or "")
            if name != _FILES or not known_as:
                raise Problem("INVALID_INPUT", "files: send files under this name, each with a name.", fields=(_FILES,))
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
        problem = invalid(error)
    raise problem


def _plain(name: str) -> str:
    """Return a file's name without folders and without what cannot be printed."""
    base = PurePosixPath(name.replace("\\", "/")).name
    return "".join(char if char.isprintable() else " " for char in base).strip()[:_MAX_NAME]
