"""`/api/rag/ingest`: documents come in, as JSON or as files, and a job is followed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from spanforge.reference import Document
from spanforge.reference.models import IngestionOutput
from spanforge.server import sources
from spanforge.server.asking import check_embedding_model
from spanforge.server.bodies import JSON, MULTIPART, invalid, json_body, media_type
from spanforge.server.models import MAX_DOCUMENTS, CutOptions, DocumentBody, IngestRequest, Job
from spanforge.server.problems import Problem
from spanforge.server.service import Admitted, ServiceOf
from spanforge.server.sniffing import sniff
from spanforge.server.tenants import Tenant

_MAX_FIELDS: Final = 16
_MAX_FIELD_BYTES: Final = 4_096
_MAX_NAME: Final = 200

router = APIRouter(prefix="/api/rag/ingest", tags=["Ingestion"])

JobId = Annotated[str, Path(alias="jobId")]


@router.post("", response_model=Job, status_code=202, summary="Start an ingestion job")
async def start(request: Request, principal: Admitted, service: ServiceOf) -> Response:
    """Take documents for a source that the caller owns, and read them in a job.

    Every upload is judged by what it holds; one that cannot be a document refuses the request, and nothing is ingested.
    """
    cut, read = await _upload(request, service.settings.max_json_depth)
    if cut.chunk_overlap >= cut.chunk_size:
        raise Problem("INVALID_INPUT", "chunkOverlap: must be less than chunkSize.", fields=("chunkOverlap",))

    def submit(tenant: Tenant) -> IngestionOutput:
        check_embedding_model(tenant, cut.embedding_model)
        with tenant.writing:
            sources.check_writable(tenant, principal.user, cut.data_source_id)
            options = {"chunk_size": cut.chunk_size, "chunk_overlap": cut.chunk_overlap}
            return service.jobs.submit(tenant, principal.user, cut.data_source_id, read(), options)

    job = await service.work(principal, service.settings.query_timeout_s, submit)
    return _answer(job, 202, {"Location": f"{request.scope.get('root_path', '')}/api/rag/ingest/{job.job_id}"})


@router.get("/{jobId}", response_model=Job, summary="Follow a job")
async def follow(job_id: JobId, principal: Admitted, service: ServiceOf) -> Response:
    """Return the state of a job that the caller started."""

    def get(tenant: Tenant) -> IngestionOutput:
        return service.jobs.get(tenant, principal.user, job_id)

    return _answer(await service.work(principal, service.settings.retrieve_timeout_s, get))


@router.delete("/{jobId}", response_model=Job, summary="Cancel a job")
async def cancel(job_id: JobId, principal: Admitted, service: ServiceOf) -> Response:
    """Ask a job to stop. Documents that were ingested stay, whole; nothing is written from now on.

    A job that was at work ends `failed` with the reason CANCELLED when it notices; one that had ended stays as it is.
    """

    def stop(tenant: Tenant) -> IngestionOutput:
        return service.jobs.cancel(tenant, principal.user, job_id)

    return _answer(await service.work(principal, service.settings.query_timeout_s, stop))


async def _upload(request: Request, max_depth: int) -> tuple[CutOptions, Callable[[], list[Document]]]:
    """Read the body; return the options, and what makes documents of the rest, which takes time.

    Raises:
        Problem: The body is of another media type, or not of its form.
    """
    match media_type(request):
        case "application/json":
            body = await json_body(request, IngestRequest, max_depth)
            return body, lambda: [_document(one) for one in body.documents]
        case "multipart/form-data":
            cut, files = await _form(request)
            return cut, lambda: [_file(name, content) for name, content in files.items()]
        case _:
            raise Problem("UNSUPPORTED_MEDIA_TYPE", f"Send the body as {JSON} or {MULTIPART}.")


def _answer(job: IngestionOutput, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(Job.of(job).model_dump_json(by_alias=True), status, headers, JSON)


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


def _file(name: str, content: bytes) -> Document:
    return Document(document_id=name, content=content, name=name, media_type=sniff(content, name))


async def _form(request: Request) -> tuple[CutOptions, dict[str, bytes]]:
    """Read an upload: files under `files`, whose names are their ids, and the options as fields.

    Raises:
        Problem: It is not of this form.
    """
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    form = request.form(max_files=MAX_DOCUMENTS, max_fields=_MAX_FIELDS, max_part_size=_MAX_FIELD_BYTES)
    async with form as parts:
        for name, value in parts.multi_items():
            if not isinstance(value, UploadFile):
                if name in fields:
                    raise Problem("INVALID_INPUT", "A field is given twice.")
                fields[name] = value
                continue
            known_as = _file_name(value.filename or "")
            if name != "files" or not known_as:
                raise Problem(
                    "INVALID_INPUT", "files: send files under this name, each with a name.", fields=("files",)
                )
            files[known_as] = await value.read()
    if not files:
        raise Problem("INVALID_INPUT", "files: at least one file is required.", fields=("files",))
    problem: Problem
    try:
        cut = CutOptions.model_validate_strings(fields)
    except ValidationError as error:
        # The error carries the input: only names and rules leave this block.
        problem = invalid(error)
    else:
        return cut, files
    raise problem


def _file_name(name: str) -> str:
    base = PurePosixPath(name.replace("\\", "/")).name
    return "".join(char if char.isprintable() else " " for char in base).strip()[:_MAX_NAME]
