"""`/api/rag/ingest`: documents come in, as JSON or as files, and a job is followed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from spanforge.reference.models import IngestionOutput
from spanforge.server import sources
from spanforge.server.asking import check_embedding_model
from spanforge.server.bodies import JSON
from spanforge.server.ingest.forms import upload_of
from spanforge.server.models import Job
from spanforge.server.service import Admitted, ServiceOf
from spanforge.server.tenants import Tenant

router = APIRouter(prefix="/api/rag/ingest", tags=["Ingestion"])

JobId = Annotated[str, Path(alias="jobId")]


@router.post("", response_model=Job, status_code=202, summary="Start an ingestion job")
async def start(request: Request, user: Admitted, service: ServiceOf) -> Response:
    """Take documents for a source that the caller owns, and read them in a job.

    Every upload is judged by what it holds; one that cannot be a document refuses the request, and nothing is ingested.
    """
    with service.uploads.working(user.org_id):
        async with upload_of(request, service.settings.max_json_depth) as (cut, documents):

            def submit(tenant: Tenant) -> IngestionOutput:
                check_embedding_model(tenant, cut.embedding_model)
                with tenant.pipeline.writing:
                    sources.check_writable(tenant, user, cut.data_source_id)
                    return service.jobs.submit(tenant, user, cut.data_source_id, documents, cut.cut)

            job = await service.work(user, submit)
    return _answer(job, 202, {"Location": f"{request.scope.get('root_path', '')}/api/rag/ingest/{job.job_id}"})


@router.get("/{jobId}", response_model=Job, summary="Follow a job")
async def follow(job_id: JobId, user: Admitted, service: ServiceOf) -> Response:
    """Return the state of a job that the caller started."""
    return _answer(await service.work(user, lambda tenant: service.jobs.get(tenant, user, job_id), quick=True))


@router.delete("/{jobId}", response_model=Job, summary="Cancel a job")
async def cancel(job_id: JobId, user: Admitted, service: ServiceOf) -> Response:
    """Ask a job to stop. Documents that were ingested stay, whole; nothing is written from now on.

    A job that was at work ends `failed` with the reason CANCELLED when it notices; one that had ended stays as it is.
    """
    return _answer(await service.work(user, lambda tenant: service.jobs.cancel(tenant, user, job_id)))


def _answer(job: IngestionOutput, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(Job.of(job).model_dump_json(by_alias=True), status, headers, JSON)
