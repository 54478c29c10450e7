"""The SDK's own figures, and those of a metrics sink, for Prometheus: as text, or family by family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, Protocol, TypeAlias

from spanforge.metrics.meter import Point, PointLedger, Snapshot
from spanforge.metrics.sink import MetricsSink

__all__ = ["CONTENT_TYPE", "Family", "families", "metrics_text"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of `metrics_text`."""

Labels: TypeAlias = Mapping[str, str]


class _Ledger(Protocol):
    """A ledger: of a sink's events, or of a receiver's metric points."""

    @property
    def accepted(self) -> int: ...
    @property
    def delivered(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def dropped(self) -> Mapping[str, int]: ...
    @property
    def pending(self) -> int: ...


class Status(Protocol):
    """What `sf_rag.get_status()` returns."""

    @property
    def active_sessions(self) -> int: ...
    @property
    def total_queries(self) -> int: ...
    @property
    def sinks(self) -> Mapping[str, _Ledger]: ...
    @property
    def metrics(self) -> Mapping[str, PointLedger]: ...
    @property
    def orphans(self) -> int: ...
    @property
    def replaced(self) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its samples.

    Attributes:
        name: Its name, without the suffix of counters.
        kind: Its type.
        help: What it says.
        samples: Suffix, labels and value of each sample.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: tuple[tuple[str, Labels, float], ...]


def families(status: Status, metrics: MetricsSink | None = None) -> list[Family]:
    """Return every metric.

    Args:
        status: From `sf_rag.get_status()`.
        metrics: The metrics sink that `configure()` was given, if it was given one.
    """
    return [*_of_status(status), *(_of_meter(metrics.meter.snapshot()) if metrics is not None else ())]


def _of_status(status: Status) -> Iterator[Family]:
    yield from _of_ledgers("events", "Events", status.sinks)
    if status.metrics:
        yield from _of_ledgers("metric_points", "Metric points", status.metrics)
    yield Family("spanforge_sessions_open", "gauge", "Sessions open now.", (("", {}, status.active_sessions),))
    yield Family("spanforge_queries", "counter", "Queries traced.", (("_total", {}, status.total_queries),))
    yield Family("spanforge_orphans", "counter", "Stages of sessions not open here.", (("_total", {}, status.orphans),))
    replaced = [("_total", {"reason": reason}, count) for reason, count in status.replaced.items()]
    yield Family("spanforge_inputs_replaced", "counter", "Inputs replaced or left out, by reason.", tuple(replaced))


def _of_ledgers(what: str, text: str, ledgers: Mapping[str, _Ledger]) -> Iterator[Family]:
    for field, done in (
        ("accepted", "taken from the application"),
        ("delivered", "the receiver has"),
        ("failed", "the receiver refused or could not write"),
    ):
        counts = [("_total", {"sink": name}, getattr(ledger, field)) for name, ledger in ledgers.items()]
        yield Family(f"spanforge_{what}_{field}", "counter", f"{text} {done}.", tuple(counts))
    dropped = [
        ("_total", {"sink": name, "reason": reason}, count)
        for name, ledger in ledgers.items()
        for reason, count in ledger.dropped.items()
    ]
    yield Family(f"spanforge_{what}_dropped", "counter", f"{text} given up, by reason.", tuple(dropped))
    pending = [("", {"sink": name}, ledger.pending) for name, ledger in ledgers.items()]
    yield Family(f"spanforge_{what}_pending", "gauge", f"{text} that wait.", tuple(pending))


def _of_meter(taken: Snapshot) -> Iterator[Family]:
    for instrument, found in taken.points.items():
        if instrument.bounds:
            samples = [s for labels, point in found.items() for s in _histogram(instrument.bounds, point, dict(labels))]
        else:
            samples = [("_total", dict(labels), point.total) for labels, point in found.items()]
        kind = "histogram" if instrument.bounds else "counter"
        yield Family(instrument.name, kind, instrument.description, tuple(samples))


def _histogram(bounds: tuple[float, ...], point: Point, labels: Labels) -> Iterator[tuple[str, Labels, float]]:
    names = (*(_number(bound) for bound in bounds), "+Inf")
    for bound, count in zip(names, accumulate(point.buckets), strict=True):
        yield "_bucket", {**labels, "le": bound}, count
    yield "_count", labels, point.count
    yield "_sum", labels, point.total


def metrics_text(status: Status, metrics: MetricsSink | None = None) -> str:
    """Return every metric in Prometheus's text format (see `families`)."""
    return "".join(_lines(families(status, metrics)))


def _lines(found: Iterable[Family]) -> Iterator[str]:
    for family in found:
        name = f"{family.name}_total" if family.kind == "counter" else family.name
        yield f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"
        for suffix, labels, value in family.samples:
            said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"{family.name}{suffix}{f'{{{said}}}' if said else ''} {_number(value)}\n"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1 << 53 else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
