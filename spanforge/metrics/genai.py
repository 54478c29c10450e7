"""OpenTelemetry GenAI metrics: names, units and bucket bounds of 0.1 (Development), and the names before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from spanforge.metrics.instruments import Attributes, Instrument, Reading, Values, known, measured
from spanforge.namespaces.errors import error_type
from spanforge.namespaces.providers import well_known

__all__ = ["DURATION_BOUNDS", "EARLIER", "GENAI", "TOKEN_BOUNDS"]

DURATION_BOUNDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKEN_BOUNDS: Final = tuple(float(4**power) for power in range(14))

_GENERATED: Final = "llm.rag.generated"
_QUERY: Final = "llm.rag.query"
_RETRIEVED: Final = "llm.rag.retrieved"
_UNKNOWN: Final = "unknown"
"""Stands for a provider that nobody named, which the conventions require."""


def _attributes(event_type: str, payload: Values) -> Attributes:
    """Say what was done, by whom and how it ended; a retrieval names neither a provider nor a model."""
    if event_type == _RETRIEVED:
        return (("gen_ai.operation.name", "retrieval"), *_error(payload))
    if event_type == _QUERY:
        operation, provider, model = "embeddings", payload.get("embedding_provider"), payload.get("embedding_model")
    else:
        operation, provider, model = "chat", payload.get("provider"), payload.get("model")
    named = known(("gen_ai.provider.name", well_known(provider) or _UNKNOWN), ("gen_ai.request.model", model))
    return (("gen_ai.operation.name", operation), *named, *_error(payload))


def _error(payload: Values) -> Attributes:
    status: Any = payload.get("status", "ok")
    failed = status in {"error", "timeout"}
    return (("error.type", error_type(status, str(payload.get("error_message") or ""))),) if failed else ()


def _of(field: str, event_type: str, payload: Values, *, per: int = 1, more: Attributes = ()) -> Iterator[Reading]:
    if event_type == _QUERY and not payload.get("embedding_model"):
        return
    for value in measured(payload.get(field), per=per):
        yield (*_attributes(event_type, payload), *more), value


_seconds: Final = partial(_of, "latency_ms", per=1_000)
_first_chunk: Final = partial(_of, "time_to_first_token_ms", per=1_000)


def _tokens_by_type(event_type: str, payload: Values) -> Iterable[Reading]:
    for kind, field in (("input", "prompt_tokens"), ("output", "output_tokens")):
        yield from _of(field, event_type, payload, more=(("gen_ai.token.type", kind),))


def _duration(name: str, what: str, *event_types: str) -> Instrument:
    return Instrument(name, "s", f"Duration of {what}.", event_types, _seconds, DURATION_BOUNDS)


def _usage(direction: str, field: str) -> tuple[Instrument, Instrument]:
    """Return how many tokens each call took, and how many were used up."""
    prefix, text = "gen_ai.client.inference", (("gen_ai.token.modality", "text"),)
    each, used = partial(_of, field), partial(_of, field, more=text)
    call, all_of = f"{direction.capitalize()} tokens of one call.", f"{direction.capitalize()} tokens used."
    return (
        Instrument(f"{prefix}.operation.{direction}_tokens", "{token}", call, (_GENERATED,), each, TOKEN_BOUNDS),
        Instrument(f"{prefix}.usage.{direction}_tokens", "{token}", all_of, (_GENERATED,), used),
    )


GENAI: Final = (
    _duration("gen_ai.client.inference.duration", "a call to a model", _GENERATED),
    _duration("gen_ai.client.embeddings.duration", "an embedding", _QUERY),
    _duration("gen_ai.retrieval.duration", "a retrieval", _RETRIEVED),
    Instrument(
        "gen_ai.client.inference.time_to_first_chunk",
        "s",
        "Time to the first chunk of a streamed answer.",
        (_GENERATED,),
        _first_chunk,
        DURATION_BOUNDS,
    ),
    *_usage("input", "prompt_tokens"),
    *_usage("output", "output_tokens"),
)

EARLIER: Final = (
    _duration("gen_ai.client.operation.duration", "the operation", _GENERATED, _QUERY, _RETRIEVED),
    Instrument(
        "gen_ai.client.token.usage", "{token}", "Tokens of one call.", (_GENERATED,), _tokens_by_type, TOKEN_BOUNDS
    ),
    Instrument(
        "gen_ai.client.operation.time_to_first_chunk",
        "s",
        "Time to the first chunk of a streamed answer.",
        (_GENERATED,),
        _first_chunk,
        DURATION_BOUNDS,
    ),
)
"""As they were called before 0.1."""
