"""Ratios measured in one run: blocks of both sides in turn, so that a busy machine slows both alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

BLOCKS = 21


@dataclass(frozen=True)
class Comparison:
    """What two sides cost, in microseconds a session, and the median of their ratios block by block."""

    ours: float
    theirs: float
    ratio: float


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        work: Done once for each session.
        settle: Done after each block; unless `settle_counts`, on nobody's clock.
    """

    work: Callable[[], object]
    settle: Callable[[], object] = lambda: None


def compare(
    ours: Side,
    theirs: Side,
    *,
    clock: Callable[[], int],
    sessions: int = 200,
    blocks: int = BLOCKS,
    settle_counts: bool = False,
) -> Comparison:
    """Measure both sides in alternating blocks.

    Args:
        clock: Nanoseconds: `time.thread_time_ns` for the caller, `time.process_time_ns` for the whole process.
        sessions: Sessions a block.
        settle_counts: The time until everything has arrived belongs to the cost.
    """
    for side in (ours, theirs):
        for _ in range(sessions):
            side.work()
        side.settle()
    costs: tuple[list[float], list[float]] = ([], [])
    for _ in range(blocks):
        for side, kept in zip((ours, theirs), costs, strict=True):
            started = clock()
            for _ in range(sessions):
                side.work()
            if settle_counts:
                side.settle()
            kept.append((clock() - started) / sessions / 1000)
            side.settle()
    ratios = [mine / other for mine, other in zip(*costs, strict=True)]
    return Comparison(statistics.median(costs[0]), statistics.median(costs[1]), statistics.median(ratios))


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table (seen with `pytest -s`, and in the report of a failure)."""
    print(f"\n{title}")  # noqa: T201  the table is the product
    print("| " + " | ".join(columns) + " |")  # noqa: T201
    print("|" + "---|" * len(columns))  # noqa: T201
    for row in rows:
        cells = (f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row)
        print("| " + " | ".join(cells) + " |")  # noqa: T201


class CountingExporter(SpanExporter):
    """Counts spans, does nothing else, or hands each to `write`."""

    def __init__(self, write: Callable[[ReadableSpan], object] | None = None) -> None:
        self.spans = 0
        self._write = write

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += len(spans)
        if self._write is not None:
            for span in spans:
                self._write(span)
        return SpanExportResult.SUCCESS


def provider_of(exporter: SpanExporter) -> TracerProvider:
    """A tracer provider with a batch processor that has room for a whole block."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=100_000))
    return provider
