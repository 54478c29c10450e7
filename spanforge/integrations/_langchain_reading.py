"""What LangChain's objects say of retrievers, models and answers."""

# What is handed over has no types that hold in all versions of a framework.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from spanforge.integrations._quiet import quiet
from spanforge.integrations._stage import Stage

__all__ = ["answer_of", "asking", "conversation_of", "describe", "first_of", "hits_of", "retriever_of"]

_CONVERSATIONS: Final = ("thread_id", "session_id", "conversation_id")
_KEYWORDS: Final = "search_kwargs"
_COUNTS: Final = ("k", "top_k", "top_n")
asking: ContextVar[tuple[Any, dict[str, Any]] | None] = ContextVar("spanforge_asking", default=None)
"""The retriever that is asked, which its callbacks do not say, and what it is given."""


@quiet
def conversation_of(metadata: Any) -> Any:
    """Return the conversation that metadata names."""
    return next((found for name in _CONVERSATIONS if (found := metadata.get(name))), None)


@quiet
def first_of(asked: Any) -> Any:
    """Return the first of several prompts."""
    return asked[0] if asked else None


@quiet
def retriever_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a retriever, as keywords of `trace_query`."""
    metadata = told.get("metadata") or {}
    return {
        "retriever_name": told.get("name") or metadata.get("ls_retriever_name") or "",
        "embedding_provider": metadata.get("ls_embedding_provider"),
        "top_k": _top_k(),
    }


@quiet
def _top_k() -> int | None:
    """Return how many documents the retriever was asked for, as far as it says."""
    retriever, given = asking.get() or (None, {})
    own = {name: getattr(retriever, name) for name in _possible_counts(type(retriever))}
    places: tuple[Mapping[str, Any], ...] = (given, own.pop(_KEYWORDS, None) or {}, own)
    found = (place.get(name) for place in places if place for name in _COUNTS)
    return next((value for value in found if isinstance(value, int)), None)


@functools.lru_cache(maxsize=256)
def _possible_counts(kind: Any) -> tuple[str, ...]:
    """Return what retrievers of a class may say of it: that it says nothing takes a model of pydantic long to say."""
    known = getattr(kind, "model_fields", {})
    return tuple(name for name in (_KEYWORDS, *_COUNTS) if name in known or hasattr(kind, name))


@quiet
def describe(stage: Stage, serialized: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Add what is said of a model before it answers."""
    metadata, parameters = told.get("metadata") or {}, told.get("invocation_params") or {}
    model = metadata.get("ls_model_name") or parameters.get("model") or parameters.get("model_name")
    model = model or told.get("name") or serialized.get("name")
    stage.model = model if isinstance(model, str) else ""
    stage.details |= {
        "span_name": told.get("name") or "rag-generation",
        "provider": metadata.get("ls_provider"),
        "temperature": metadata.get("ls_temperature"),
    }


@quiet
def hits_of(documents: Any, scores: Mapping[int, tuple[Any, Any]]) -> list[dict[str, Any]]:
    """Return documents as dicts, which cost less to read than to ask each for every name that there might be."""
    hits: list[dict[str, Any]] = [
        {"id": one.id, "content": one.page_content, "metadata": one.metadata} for one in documents
    ]
    for one, hit in zip(documents, hits, strict=True) if scores else ():
        if id(one) in scores:
            hit["score"] = scores[id(one)][1]
    return hits


def answer_of(response: Any) -> dict[str, Any]:
    """Return what an answer says of itself."""
    generation = response.generations[0][0] if response.generations and response.generations[0] else None
    message = getattr(generation, "message", None)
    said: Mapping[str, Any] = {
        **(response.llm_output or {}),
        **(getattr(generation, "generation_info", None) or {}),
        **(getattr(message, "response_metadata", None) or {}),
    }
    own_id = getattr(message, "id", None)
    is_made_up = isinstance(own_id, str) and own_id.startswith(("run-", "lc_run-", "lc_"))
    usage = getattr(message, "usage_metadata", None)
    details = {
        "response_model": said.get("model_name") or said.get("model"),
        "finish_reason": said.get("finish_reason") or said.get("stop_reason") or said.get("done_reason"),
    }
    if (usage or {}).get("total_cost") == 0:
        # Out of LangChain's own cache, which marks it so: its tokens and its id are those of the call that filled it.
        return {**details, "cost_usd": 0.0}
    return {
        **details,
        "response_id": said.get("id") or (None if is_made_up else own_id),
        **_tokens(usage, said.get("token_usage") or {}),
    }


def _tokens(usage: Mapping[str, Any] | None, older: Mapping[str, Any]) -> dict[str, Any]:
    if usage is None:
        return {"prompt_tokens": older.get("prompt_tokens"), "output_tokens": older.get("completion_tokens")}
    given, taken = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "cached_tokens": given.get("cache_read"),
        "cache_write_tokens": given.get("cache_creation"),
        "reasoning_tokens": taken.get("reasoning"),
    }
