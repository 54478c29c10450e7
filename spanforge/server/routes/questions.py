"""`POST /api/rag/retrieve` and `POST /api/rag/query`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Request, Response

from spanforge.reference import RagResult
from spanforge.reference.failures import NoResults
from spanforge.reference.models import RetrievalOutput
from spanforge.reference.tracing import hits_of, session
from spanforge.server.asking import ask_options, check_models, checked, retrieve_options
from spanforge.server.bodies import JSON, json_body
from spanforge.server.models import QueryRequest, RetrieveRequest
from spanforge.server.service import Admitted, ServiceOf
from spanforge.server.streaming import streamed

if TYPE_CHECKING:
    from spanforge.reference import User
    from spanforge.server.tenants import Tenant

SESSION_HEADER: Final = "X-Spanforge-Session"

router = APIRouter(prefix="/api/rag", tags=["Questions"])


@router.post("/retrieve", response_model=RetrievalOutput, summary="Find passages, without an answer")
async def retrieve(request: Request, user: Admitted, service: ServiceOf) -> Response:
    """Search the sources the caller may query; nothing found is an empty result with the warning NO_RESULTS."""
    body = await json_body(request, RetrieveRequest, service.settings.max_json_depth)

    def search(tenant: Tenant) -> tuple[RetrievalOutput, str]:
        check_models(tenant, body)
        return _retrieve(tenant, body, user)

    output, session_id = await service.work(user, search, quick=True)
    return answer_with(output, session_id)


@router.post("/query", response_model=RagResult, summary="Answer a question from the documents")
async def query(request: Request, user: Admitted, service: ServiceOf) -> Response:
    """Answer from the sources the caller may query, whole or, with `stream`, as server-sent events."""
    body = await json_body(request, QueryRequest, service.settings.max_json_depth)
    if body.stream:
        return await streamed(service, user, body, ask_options(body, user))

    def ask(tenant: Tenant) -> RagResult:
        check_models(tenant, body)
        return checked(tenant.pipeline.ask(body.query, **ask_options(body, user)))

    result = await service.work(user, ask)
    return answer_with(result, result.session_id)


def answer_with(output: RagResult | RetrievalOutput, session_id: str) -> Response:
    """Return an answer of the pipeline as it is."""
    return Response(output.model_dump_json(by_alias=True), media_type=JSON, headers={SESSION_HEADER: session_id})


def _retrieve(tenant: Tenant, body: RetrieveRequest, user: User) -> tuple[RetrievalOutput, str]:
    pipeline = tenant.pipeline
    embedder = pipeline.embedder.name if pipeline.embedder else ""
    with (
        session(body.query, top_k=body.top_k, embedding_model=embedder, namespace="", pipeline_name="retrieve") as run,
        run.retrieval() as span,
    ):
        try:
            output = pipeline.retrieve(body.query, **retrieve_options(body, user))
        except NoResults as nothing:
            output = RetrievalOutput(documents=[], scores=[], total_found=0, data_sources=[], warnings=[nothing.code])
        span.record(hits_of(output.documents), total_found=output.total_found)
    return output, run.session_id
