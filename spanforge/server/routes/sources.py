"""`/api/rag/sources`: what the caller may search, and whose it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from spanforge.server import sources
from spanforge.server.bodies import JSON, json_body
from spanforge.server.models import Source, SourceList, SourceRequest
from spanforge.server.service import Admitted, ServiceOf
from spanforge.server.tenants import Tenant

router = APIRouter(prefix="/api/rag/sources", tags=["Data sources"])

SourceId = Annotated[str, Path(alias="id")]


@router.get("", response_model=SourceList, summary="List data sources")
async def list_sources(principal: Admitted, service: ServiceOf) -> Response:
    """Return the sources the caller may query."""

    def find(tenant: Tenant) -> SourceList:
        return SourceList(sources=sources.visible(tenant, principal.user))

    found = await service.work(principal, service.settings.retrieve_timeout_s, find)
    return Response(found.model_dump_json(by_alias=True), media_type=JSON)


@router.post("", response_model=Source, status_code=201, summary="Create a data source")
async def create(request: Request, principal: Admitted, service: ServiceOf) -> Response:
    """Create a source that belongs to the caller, and return it with its id."""
    body = await json_body(request, SourceRequest, service.settings.max_json_depth)

    def make(tenant: Tenant) -> Source:
        return sources.create(tenant, principal.user, body)

    made = await service.work(principal, service.settings.query_timeout_s, make)
    place = f"{request.scope.get('root_path', '')}/api/rag/sources/{made.id}"
    return Response(made.model_dump_json(by_alias=True), 201, {"Location": place}, JSON)


@router.delete("/{id}", status_code=204, response_class=Response, summary="Delete a data source")
async def delete(source_id: SourceId, principal: Admitted, service: ServiceOf) -> Response:
    """Delete a source of the caller's with its passages, vectors and jobs; it is gone when this is answered."""

    def drop(tenant: Tenant) -> None:
        sources.delete(tenant, principal.user, source_id, service.jobs)

    await service.work(principal, service.settings.query_timeout_s, drop)
    return Response(status_code=204)
