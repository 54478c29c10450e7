"""AITF's own metrics of a RAG pipeline, in milliseconds as AITF counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from spanforge.metrics.instruments import Instrument, Reading, Values, known, measured

__all__ = ["AITF"]

_LATENCY_BOUNDS: Final = tuple(10.0 * 2**power for power in range(14))
_RESULT_BOUNDS: Final = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)

_RETRIEVED: Final = ("llm.rag.retrieved",)
_GENERATED: Final = ("llm.rag.generated",)


def _of(field: str, _event_type: str, payload: Values) -> Iterator[Reading]:
    for value in measured(payload.get(field)):
        yield known(("gen_ai.request.model", payload.get("model"))), value


def _one(_event_type: str, _payload: Values) -> Iterator[Reading]:
    yield (), 1


def _results(_event_type: str, payload: Values) -> Iterator[Reading]:
    # An empty result is one: a retrieval that found nothing.
    yield (), len(payload.get("chunks") or ())


AITF: Final = (
    Instrument("aitf.rag.retrievals", "{retrieval}", "Retrievals.", _RETRIEVED, _one),
    Instrument(
        "aitf.rag.retrieval.duration",
        "ms",
        "Duration of a retrieval.",
        _RETRIEVED,
        partial(_of, "latency_ms"),
        _LATENCY_BOUNDS,
    ),
    Instrument(
        "aitf.rag.retrieval.results", "{document}", "Documents of a retrieval.", _RETRIEVED, _results, _RESULT_BOUNDS
    ),
    Instrument(
        "aitf.latency.total_ms",
        "ms",
        "Duration of a call to a model.",
        _GENERATED,
        partial(_of, "latency_ms"),
        _LATENCY_BOUNDS,
    ),
    Instrument(
        "aitf.latency.time_to_first_token_ms",
        "ms",
        "Time to the first token of a streamed answer.",
        _GENERATED,
        partial(_of, "time_to_first_token_ms"),
        _LATENCY_BOUNDS,
    ),
)
