"""Our own metrics, for Prometheus. Labels are few and known beforehand; a session, a digest or a model is never one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from spanforge.metrics.instruments import Instrument, Reading, Values, measured

__all__ = ["OWN"]

_LATENCY_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_GROUNDING_BOUNDS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

_STAGES: Final[Mapping[str, str]] = {
    "llm.rag.query": "query",
    "llm.rag.retrieved": "retrieval",
    "llm.rag.reranked": "rerank",
    "llm.rag.generated": "generation",
    "llm.rag.evaluated": "evaluation",
}
_GENERATED: Final = ("llm.rag.generated",)


def _stage(event_type: str, _payload: Values) -> Iterator[Reading]:
    yield (("stage", _STAGES[event_type]),), 1


def _duration(event_type: str, payload: Values) -> Iterator[Reading]:
    for value in measured(payload.get("latency_ms"), per=1_000):
        yield (("stage", _STAGES[event_type]),), value


def _grounding(_event_type: str, payload: Values) -> Iterator[Reading]:
    if (score := payload.get("grounding_score")) is not None:
        yield (), score


def _tokens(_event_type: str, payload: Values) -> Iterator[Reading]:
    for kind, field in (("input", "prompt_tokens"), ("output", "output_tokens")):
        for value in measured(payload.get(field)):
            yield (("type", kind),), value


def _error(event_type: str, payload: Values) -> Iterator[Reading]:
    if (status := payload.get("status")) in {"error", "timeout"}:
        yield (("stage", _STAGES[event_type]), ("status", status)), 1


def _session(_event_type: str, payload: Values) -> Iterator[Reading]:
    if (status := payload.get("status")) in {"ok", "partial", "error"}:
        yield (("status", status),), 1


OWN: Final = (
    Instrument("spanforge_stages", "", "Stages traced.", tuple(_STAGES), _stage),
    Instrument(
        "spanforge_stage_duration_seconds",
        "s",
        "Duration of stages that measured it.",
        tuple(_STAGES),
        _duration,
        _LATENCY_BOUNDS,
    ),
    Instrument(
        "spanforge_grounding_score",
        "1",
        "Share of an answer that its context supports.",
        _GENERATED,
        _grounding,
        _GROUNDING_BOUNDS,
    ),
    Instrument("spanforge_tokens", "{token}", "Tokens of generations.", _GENERATED, _tokens),
    Instrument("spanforge_errors", "", "Stages that failed.", tuple(_STAGES), _error),
    Instrument("spanforge_sessions", "", "Sessions that ended.", ("llm.rag.session",), _session),
)
