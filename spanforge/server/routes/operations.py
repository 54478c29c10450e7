"""What keeps the server running asks: is it alive, is it ready, how is it doing."""

from __future__ import annotations

import asyncio
import json

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from spanforge.metrics import CONTENT_TYPE, metrics_text
from spanforge.sdk import sf_rag
from spanforge.server.bodies import JSON
from spanforge.server.documentation import POLICY, page
from spanforge.server.models import State
from spanforge.server.problems import Problem
from spanforge.server.service import Admitted, ServiceOf

router = APIRouter(tags=["Operations"])


@router.get("/healthz", response_model=State, summary="Is the process alive?")
async def health() -> Response:
    """Answer at once; says nothing of what the process needs."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz", response_model=State, summary="Can it take requests?")
async def ready(request: Request, service: ServiceOf) -> Response:
    """Answer `ok` once the models are loaded, while the server's folder can be read and it is not stopping."""
    warming: asyncio.Task[object] | None = request.app.state.warming
    if warming is not None and not warming.done():
        raise Problem("OVERLOADED", "The server is loading its models.", {"Retry-After": "1"})
    if service.jobs.is_closing or not service.tenants.readable():
        raise Problem("OVERLOADED", "The server is stopping, or its folder cannot be read.", {"Retry-After": "5"})
    return JSONResponse({"status": "ok"})


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document; it holds nothing of any organisation."""
    return Response(await asyncio.to_thread(request.app.state.description), media_type=JSON)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Return the same for people to read; it needs no other host."""
    document = await asyncio.to_thread(request.app.state.description)
    return HTMLResponse(page(json.loads(document)), headers={"Content-Security-Policy": POLICY})


@router.get("/metrics", response_class=PlainTextResponse, summary="Figures for Prometheus")
async def metrics(_: Admitted) -> Response:
    """Return the SDK's ledgers and counters of the whole process.

    They count the work of all organisations, so they need a role of their own; to be on the same machine is not enough,
    because behind a proxy everybody is.
    """
    return Response(metrics_text(sf_rag.get_status()), media_type=CONTENT_TYPE)
