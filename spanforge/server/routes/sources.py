"""`/api/rag/sources`: what the caller may search, and whose it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from spanforge.server import sources
from spanforge.server.bodies import JSON, json_body
from spanforge.server.models import DocumentList, SharingRequest, Source, SourceList, SourceRequest
from spanforge.server.service import Admitted, ServiceOf

router = APIRouter(prefix="/api/rag/sources", tags=["Data sources"])

SourceId = Annotated[str, Path(alias="id")]
DocumentId = Annotated[str, Query(alias="documentId", min_length=1, max_length=512)]


@router.get("", response_model=SourceList, summary="List data sources")
async def list_sources(user: Admitted, service: ServiceOf) -> Response:
    """Return the sources the caller may query."""
    return _told(await service.work(user, lambda tenant: sources.visible(tenant, user), quick=True))


@router.post("", response_model=Source, status_code=201, summary="Create a data source")
async def create(request: Request, user: Admitted, service: ServiceOf) -> Response:
    """Create a source that belongs to the caller, and return it with its id."""
    body = await json_body(request, SourceRequest, service.settings.max_json_depth)
    made = await service.work(user, lambda tenant: sources.create(tenant, user, body))
    return _told(made, 201, {"Location": f"{request.scope.get('root_path', '')}/api/rag/sources/{made.id}"})


@router.delete("/{id}", status_code=204, response_class=Response, summary="Delete a data source")
async def delete(source_id: SourceId, user: Admitted, service: ServiceOf) -> Response:
    """Delete a source of the caller's with its passages, vectors and jobs; it is gone when this is answered."""
    await service.work(user, lambda tenant: sources.delete(tenant, user, source_id))
    return Response(status_code=204)


@router.patch("/{id}", response_model=Source, summary="Share a data source")
async def share(source_id: SourceId, request: Request, user: Admitted, service: ServiceOf) -> Response:
    """Say with whom a source is shared: for its owner, and for the admins of the organisation."""
    body = await json_body(request, SharingRequest, service.settings.max_json_depth)
    return _told(await service.work(user, lambda tenant: sources.share(tenant, user, source_id, body)))


@router.get("/{id}/documents", response_model=DocumentList, summary="List the documents of a data source")
async def list_documents(source_id: SourceId, user: Admitted, service: ServiceOf) -> Response:
    """Return the documents that stand in a source the caller may query. To replace one, ingest its id again."""
    return _told(await service.work(user, lambda tenant: sources.documents(tenant, user, source_id), quick=True))


@router.delete("/{id}/documents", status_code=204, response_class=Response, summary="Delete a document")
async def delete_document(source_id: SourceId, document_id: DocumentId, user: Admitted, service: ServiceOf) -> Response:
    """Delete one document of a source of the caller's; its text is gone when this is answered."""
    await service.work(user, lambda tenant: sources.delete_document(tenant, user, source_id, document_id))
    return Response(status_code=204)


def _told(answer: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(answer.model_dump_json(by_alias=True, exclude_none=True), status, headers, JSON)
