"""From the body of a question to what the pipeline takes, and from its result to an answer or a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spanforge.reference.asking.options import AskOptions, RetrieveOptions
from spanforge.reference.failures import failure_codes
from spanforge.reference.models import Filter
from spanforge.server.models import QueryRequest
from spanforge.server.problems import Problem, problem_of

if TYPE_CHECKING:
    from spanforge.reference import RagResult, User
    from spanforge.reference.models import FilterField
    from spanforge.server.models import AnyFilter, RetrieveRequest
    from spanforge.server.tenants import Tenant

_ENDS_STRICT: Final = frozenset({"INSUFFICIENT_CONTEXT", "NOT_GROUNDED"})
"""Refusals of strict mode, which are errors of the contract."""


def retrieve_options(body: RetrieveRequest, user: User) -> RetrieveOptions:
    """Return the options of `Pipeline.retrieve`."""
    return RetrieveOptions(
        data_sources=body.data_sources,
        top_k=body.top_k,
        filters=[_filter(one) for one in body.filters],
        rerank=body.rerank,
        user=user,
    )


def ask_options(body: QueryRequest, user: User) -> AskOptions:
    """Return the options of `Pipeline.ask`."""
    return AskOptions(
        **retrieve_options(body, user),
        strict_mode=body.strict_mode,
        max_tokens=body.max_tokens,
        template=body.template,
        model=body.model,
        temperature=body.temperature,
        history=body.history,
        conversation_id=body.conversation_id,
    )


def check_models(tenant: Tenant, body: RetrieveRequest) -> None:
    """Check that a model that is named is the one at work: names go into the trace, and others would cost others.

    Raises:
        Problem: It is another.
    """
    modes = tenant.pipeline.modes
    _check("rerankModel", body.rerank_model, modes["reranker"])
    if isinstance(body, QueryRequest):
        _check("model", body.model, modes["answerer"])


def check_embedding_model(tenant: Tenant, wanted: str | None) -> None:
    """Check that the embedding model that is named is the index's.

    Raises:
        Problem: It is another.
    """
    _check("embeddingModel", wanted, tenant.pipeline.modes["embedder"])


def checked(result: RagResult) -> RagResult:
    """Return a result as it is answered: a refusal for want of documents says so among its warnings.

    Raises:
        Problem: Strict mode refused to answer.
    """
    if result.failure in _ENDS_STRICT:
        raise problem_of(failure_codes()[result.failure]())
    if result.failure is None or result.failure in result.warnings:
        return result
    return result.model_copy(update={"warnings": [*result.warnings, result.failure]})


def _filter(one: AnyFilter) -> Filter:
    field: FilterField
    match one.field:
        case "documentId":
            field = "document_id"
        case "mediaType":
            field = "media_type"
        case _:
            field = one.field
    return Filter(field=field, op=one.op, value=one.value)


def _check(field: str, wanted: str | None, known: str) -> None:
    if wanted is not None and wanted != known:
        raise Problem("INVALID_INPUT", f"{field}: this server works with another model; leave it out.", fields=(field,))
