"""`/api/rag/ingest`: documents come in, as JSON or as files, and a job is followed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from spanforge.reference.models import IngestionOutput
from spanforge.reference.parsing import Limits
from spanforge.server import sources
from spanforge.server.asking import check_embedding_model
from spanforge.server.bodies import JSON
from spanforge.server.forms import upload_of
from spanforge.server.models import Job
from spanforge.server.problems import Problem
from spanforge.server.service import Admitted, ServiceOf
from spanforge.server.tenants import Tenant

router = APIRouter(prefix="/api/rag/ingest", tags=["Ingestion"])

JobId = Annotated[str, Path(alias="jobId")]


@router.post("", response_model=Job, status_code=202, summary="Start an ingestion job")
async def start(request: Request, principal: Admitted, service: ServiceOf) -> Response:
    """Take documents for a source that the caller owns, and read them in a job.

    Every upload is judged by what it holds; one that cannot be a document refuses the request, and nothing is ingested.
    """
    with service.uploads.working(principal.org_id):
        limits = Limits.within(service.settings.max_unfolded_bytes)
        async with upload_of(request, service.settings.max_json_depth, limits) as (cut, documents):
            if cut.chunk_overlap >= cut.chunk_size:
                raise Problem("INVALID_INPUT", "chunkOverlap: must be less than chunkSize.", fields=("chunkOverlap",))

            def submit(tenant: Tenant) -> IngestionOutput:
                check_embedding_model(tenant, cut.embedding_model)
                with tenant.writing:
                    sources.check_writable(tenant, principal.user, cut.data_source_id)
                    options = {"chunk_size": cut.chunk_size, "chunk_overlap": cut.chunk_overlap}
                    return service.jobs.submit(tenant, principal.user, cut.data_source_id, documents, options)

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


def _answer(job: IngestionOutput, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(Job.of(job).model_dump_json(by_alias=True), status, headers, JSON)
