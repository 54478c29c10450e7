"""What may be said along with a question, checked once and put into the form that a run takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar

from spanforge import _clock
from spanforge.reference.asking.assembly import check_template
from spanforge.reference.asking.attempt import Ask
from spanforge.reference.asking.following import Conversations
from spanforge.reference.index.conditions import check_filter
from spanforge.reference.models import Filter, QuestionInput, RetrievalInput, User
from spanforge.reference.retrieving.understanding import process_query
from spanforge.reference.wording import checked

M = TypeVar("M", bound=RetrievalInput)

LOCAL_USER = User()


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
    rerank_model: str | None
    """Left out, or the name of the pipeline's reranker."""
    user: User
    """Who asks; the local user unless said otherwise."""


class AskOptions(RetrieveOptions, total=False):
    """Keywords of `Pipeline.ask` and its siblings, all optional."""

    strict_mode: bool
    """Refuse rather than answer beyond the documents; false unless said otherwise."""
    strict: bool
    """The same, in short."""
    max_tokens: int
    """Budget of the whole prompt; 2000 unless said otherwise."""
    template: str | None
    """Prompt template with ``{context}`` and ``{query}``."""
    model: str | None
    """Model for an answerer that has several."""
    temperature: float
    """Randomness of a model's wording, 0 to 2; 0.3 unless said otherwise."""
    history: Sequence[str]
    """What was asked before in the same conversation, the latest last, at most 32: a follow-up is read with it."""
    conversation_id: str | None
    """The conversation that the question is a turn of; what it asked last is remembered in this process."""


def user_of(options: Mapping[str, Any], known: type[RetrieveOptions]) -> User:
    """Return who asks.

    Args:
        options: Keywords as they were given.
        known: Those that there are.

    Raises:
        TypeError: There is no such keyword, or ``user`` is no `User`: whoever means to narrow what is seen, and says so
            in other words, must not get everything.
    """
    unknown = sorted(options.keys() - known.__optional_keys__)
    if unknown:
        raise TypeError(f"got an unexpected keyword argument {unknown[0]!r}")
    user = options.get("user", LOCAL_USER)
    if not isinstance(user, User):
        raise TypeError("user: a User is needed")
    return user


def retrieval_input(query: str, options: RetrieveOptions) -> RetrievalInput:
    """Return the checked input of the retrieval stage.

    Raises:
        InvalidInput: A value is outside what the contract allows; the message names the field.
    """
    return _checked(RetrievalInput, query, dict(options))


def to_ask(
    question: str, options: AskOptions, sources: tuple[str, ...], conversations: Conversations | None = None
) -> Ask:
    """Return what a run takes.

    Args:
        question: As it was asked.
        options: What was said along with it.
        sources: Ids of the sources the user may query.
        conversations: What each conversation asked last.

    Raises:
        InvalidInput: A value is outside what the contract allows.
        TemplateError: The template is unusable.
        TypeError: Strict mode is asked for and not.
    """
    values = dict(options)
    strict = values.pop("strict", None)
    if strict is not None and values.setdefault("strict_mode", strict) != strict:
        raise TypeError("strict: says the opposite of strict_mode; give one of the two")
    request = _checked(QuestionInput, question, values)
    if request.template is not None:
        check_template(request.template)
    user = options.get("user", LOCAL_USER)
    # Whoever else uses the same id is in another conversation.
    key = request.conversation_id and (user.org_id, user.user_id, request.conversation_id)
    alone = (conversations or Conversations()).next(key, question, request.history)
    return Ask(
        request=request,
        query=process_query(alone),
        org_id=user.org_id,
        sources=sources,
        now=datetime.fromtimestamp(_clock.wall_ns() / 1e9, UTC),
    )


def _checked(model: type[M], query: str, values: dict[str, Any]) -> M:
    values.pop("user", None)
    for name in ("data_sources", "filters", "history"):
        if isinstance(values.get(name), Iterable) and not isinstance(values[name], str):
            values[name] = list(values[name])
    request = checked(model, {"query": query, **values})
    for condition in request.filters:
        check_filter(condition)
    return request
