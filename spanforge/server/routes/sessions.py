"""`/api/rag/sessions`: what people think of an answer."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from spanforge.server.bodies import JSON, json_body
from spanforge.server.feedback import rate
from spanforge.server.models import Feedback, FeedbackRequest
from spanforge.server.service import Admitted, ServiceOf

router = APIRouter(prefix="/api/rag/sessions", tags=["Feedback"])

SessionId = Annotated[str, Path(alias="id")]


@router.post("/{id}/feedback", response_model=Feedback, status_code=201, summary="Rate an answer")
async def feedback(session_id: SessionId, request: Request, user: Admitted, service: ServiceOf) -> Response:
    """Record what the caller thinks of the answer of a session: one's own, or for admins any of the organisation."""
    body = await json_body(request, FeedbackRequest, service.settings.max_json_depth)
    made = await service.work(user, lambda _: rate(service.events, user, session_id, body), quick=True)
    return Response(made.model_dump_json(by_alias=True), 201, media_type=JSON)
