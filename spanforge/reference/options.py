"""What may be said along with a question, checked once and put into the form that a run takes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

from pydantic import ValidationError

from spanforge import _clock
from spanforge.reference.assembly import check_template
from spanforge.reference.failures import InvalidInput
from spanforge.reference.index.conditions import check_filter
from spanforge.reference.models import RetrievalInput, User
from spanforge.reference.run import Ask
from spanforge.reference.understanding import process_query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spanforge.reference.models import Filter

LOCAL_USER = User()
MAX_TEMPERATURE = 2.0


class RetrieveOptions(TypedDict, total=False):
    """Keywords of `Pipeline.retrieve`, all optional."""

    data_sources: Sequence[str] | None
    """Narrow to these; absent, all the user may query."""
    top_k: int
    """Passages to return, 1 to 1000; 10 unless said otherwise."""
    filters: Sequence[Filter]
    """Conditions on typed fields, all of which must hold."""
    rerank: bool
    """Whether to reorder what was found; true unless said otherwise."""
    user: User
    """Who asks; the local user unless said otherwise."""


class AskOptions(RetrieveOptions, total=False):
    """Keywords of `Pipeline.ask` and its siblings, all optional."""

    strict: bool
    """Refuse rather than answer beyond the documents; false unless said otherwise."""
    max_tokens: int
    """Budget of the whole prompt; 2000 unless said otherwise."""
    template: str | None
    """Prompt template with ``{context}`` and ``{query}``."""
    model: str | None
    """Model for an answerer that has several."""
    temperature: float
    """Randomness of a model's wording, 0 to 2; 0.3 unless said otherwise."""


def retrieval_input(query: str, options: RetrieveOptions) -> RetrievalInput:
    """Return the checked input of the retrieval stage.

    Raises:
        InvalidInput: A value is outside what the contract allows; the message names the field.
    """
    sources = options.get("data_sources")
    fields: list[str] = []
    try:
        request = RetrievalInput(
            query=query,
            data_sources=None if sources is None else list(sources),
            top_k=options.get("top_k", 10),
            filters=list(options.get("filters", ())),
            rerank=options.get("rerank", True),
        )
    except ValidationError as error:
        # The error object carries the input: only the names of the fields leave this block.
        fields = sorted({str(item["loc"][0]) for item in error.errors(include_input=False)})
    else:
        for condition in request.filters:
            check_filter(condition)
        return request
    raise InvalidInput(f"{', '.join(fields)}: outside what the contract allows.")


def to_ask(question: str, options: AskOptions, sources: tuple[str, ...]) -> Ask:
    """Return what a run takes.

    Args:
        question: As it was asked.
        options: What was said along with it.
        sources: Ids of the sources the user may query.

    Raises:
        InvalidInput: A value is outside what the contract allows.
        TemplateError: The template is unusable.
    """
    max_tokens, temperature = options.get("max_tokens", 2000), options.get("temperature", 0.3)
    if max_tokens < 1:
        raise InvalidInput("max_tokens must be at least 1.")
    if not 0.0 <= temperature <= MAX_TEMPERATURE:
        raise InvalidInput("temperature must be between 0 and 2.")
    template = options.get("template")
    if template is not None:
        check_template(template)
    return Ask(
        request=retrieval_input(question, options),
        query=process_query(question),
        org_id=options.get("user", LOCAL_USER).org_id,
        sources=sources,
        strict=options.get("strict", False),
        max_tokens=max_tokens,
        template=template,
        model=options.get("model"),
        temperature=temperature,
        now=datetime.fromtimestamp(_clock.wall_ns() / 1e9, UTC),
    )
