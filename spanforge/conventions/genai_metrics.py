"""OpenTelemetry GenAI metrics of finished stages: names, units and bucket bounds of 0.1 (Development)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from spanforge.conventions._table import Attributes, AttributeValue
from spanforge.conventions.genai import attributes
from spanforge.conventions.spans import Node
from spanforge.namespaces._payload import Payload
from spanforge.namespaces.retrieval import RAGSpanPayload

__all__ = ["DURATION_BOUNDS", "TOKEN_BOUNDS", "Metric", "Point", "measure"]

DURATION_BOUNDS: Final = (
    0.01,
    0.02,
    0.04,
    0.08,
    0.16,
    0.32,
    0.64,
    1.28,
    2.56,
    5.12,
    10.24,
    20.48,
    40.96,
    81.92,
)
TOKEN_BOUNDS: Final = tuple(float(4**power) for power in range(14))
_MAX_TOKENS: Final = (1 << 63) - 1

_DIMENSIONS: Final = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type")
"""What a point is kept apart by: of few values, never a session or a digest."""

_Key = tuple[tuple[str, AttributeValue], ...]


@dataclass(slots=True)
class Point:
    """What was measured under one set of attributes.

    Attributes:
        attributes: The set.
        count: How many measurements.
        total: Their sum.
        buckets: How many fell into each bucket, the last one open; empty for a counter.
    """

    attributes: _Key
    count: int = 0
    total: float = 0.0
    buckets: list[int] = field(default_factory=list[int])

    def add(self, value: float, bounds: tuple[float, ...]) -> None:
        """Add one measurement."""
        self.count += 1
        self.total += value
        if bounds:
            self.buckets = self.buckets or [0] * (len(bounds) + 1)
            self.buckets[bisect_left(bounds, value)] += 1


@dataclass(frozen=True, slots=True)
class Metric:
    """One instrument and its points.

    Attributes:
        name: Standard name.
        unit: UCUM unit.
        description: What it measures.
        bounds: Upper bounds of the buckets of a histogram; empty for a counter.
        points: The points.
    """

    name: str
    unit: str
    description: str
    bounds: tuple[float, ...]
    points: list[Point]


_INSTRUMENTS: Final[dict[str, tuple[str, str, tuple[float, ...]]]] = {
    "gen_ai.client.operation.duration": ("s", "Duration of the operation.", DURATION_BOUNDS),
    "gen_ai.client.inference.operation.input_tokens": ("{token}", "Input tokens of one call.", TOKEN_BOUNDS),
    "gen_ai.client.inference.operation.output_tokens": (
        "{token}",
        "Output tokens of one call.",
        TOKEN_BOUNDS,
    ),
    "gen_ai.client.inference.usage.input_tokens": ("{token}", "Input tokens used.", ()),
    "gen_ai.client.inference.usage.output_tokens": ("{token}", "Output tokens used.", ()),
}


def measure(nodes: Iterable[Node[Payload]]) -> list[Metric]:
    """Return what these nodes measured: the duration of each operation, and the tokens of each generation."""
    points: dict[str, dict[_Key, Point]] = {}

    def add(name: str, key: _Key, value: float) -> None:
        point = points.setdefault(name, {}).setdefault(key, Point(key))
        point.add(value, _INSTRUMENTS[name][2])

    for node in nodes:
        said = attributes(node)
        if "gen_ai.operation.name" not in said:
            continue
        key = _key(said)
        add("gen_ai.client.operation.duration", key, (node.end_ns - node.start_ns) / 1e9)
        if isinstance(node.payload, RAGSpanPayload):
            for kind, tokens in (
                ("input", node.payload.prompt_tokens),
                ("output", node.payload.output_tokens),
            ):
                counted = min(tokens, _MAX_TOKENS)
                add(f"gen_ai.client.inference.operation.{kind}_tokens", key, counted)
                add(
                    f"gen_ai.client.inference.usage.{kind}_tokens",
                    (*key, ("gen_ai.token.modality", "text")),
                    counted,
                )
    return [Metric(name, *_INSTRUMENTS[name], list(found.values())) for name, found in points.items()]


def _key(said: Attributes) -> _Key:
    return tuple((name, said[name]) for name in _DIMENSIONS if name in said)
