"""The SDK's own figures, and those of a metrics sink, for Prometheus: as text, or family by family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, TypeAlias

from spanforge.sdk.rag import RAGStatusInfo
from spanforge.sinks.metrics import Distribution, MetricsSink, Totals

__all__ = ["CONTENT_TYPE", "Family", "MetricsSink", "families", "metrics_text"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of `metrics_text`."""

Labels: TypeAlias = Mapping[str, str]


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


def families(status: RAGStatusInfo, metrics: MetricsSink | None = None) -> list[Family]:
    """Return every metric.

    Args:
        status: From `sf_rag.get_status()`.
        metrics: The metrics sink that `configure()` was given, if it was given one.
    """
    return [*_of_status(status), *(_of_totals(metrics.totals()) if metrics is not None else ())]


def _of_status(status: RAGStatusInfo) -> Iterator[Family]:
    ledgers = status.sinks.items()
    for field, text in (
        ("accepted", "Events taken from the application"),
        ("delivered", "Events the sink has"),
        ("failed", "Events the sink refused or could not write"),
    ):
        samples = [("_total", {"sink": name}, getattr(ledger, field)) for name, ledger in ledgers]
        yield Family(f"spanforge_events_{field}", "counter", f"{text}.", tuple(samples))
    dropped = [
        ("_total", {"sink": name, "reason": reason}, count)
        for name, ledger in ledgers
        for reason, count in ledger.dropped.items()
    ]
    yield Family("spanforge_events_dropped", "counter", "Events given up, by reason.", tuple(dropped))
    pending = [("", {"sink": name}, ledger.pending) for name, ledger in ledgers]
    yield Family("spanforge_events_pending", "gauge", "Events that wait.", tuple(pending))
    yield Family("spanforge_sessions_open", "gauge", "Sessions open now.", (("", {}, status.active_sessions),))
    yield Family("spanforge_queries", "counter", "Queries traced.", (("_total", {}, status.total_queries),))
    yield Family("spanforge_orphans", "counter", "Stages of sessions not open here.", (("_total", {}, status.orphans),))
    replaced = [("_total", {"reason": reason}, count) for reason, count in status.replaced.items()]
    yield Family("spanforge_inputs_replaced", "counter", "Inputs replaced or left out, by reason.", tuple(replaced))


def _of_totals(totals: Totals) -> Iterator[Family]:
    latency = [s for stage, found in totals.latency.items() for s in _histogram(found, {"stage": stage})]
    yield Family("spanforge_stage_duration_seconds", "histogram", "Duration of stages.", tuple(latency))
    grounding = tuple(_histogram(totals.grounding, {}))
    yield Family("spanforge_grounding_score", "histogram", "Share of an answer that its context supports.", grounding)
    tokens = [("_total", {"type": kind}, count) for kind, count in totals.tokens.items()]
    yield Family("spanforge_tokens", "counter", "Tokens of generations.", tuple(tokens))
    errors = [("_total", {"stage": s, "status": how}, count) for (s, how), count in totals.errors.items()]
    yield Family("spanforge_errors", "counter", "Stages that failed.", tuple(errors))
    sessions = [("_total", {"status": how}, count) for how, count in totals.sessions.items()]
    yield Family("spanforge_sessions", "counter", "Sessions that ended.", tuple(sessions))


def _histogram(found: Distribution, labels: Labels) -> Iterator[tuple[str, Labels, float]]:
    counts = found.counts or [0] * (len(found.bounds) + 1)
    bounds = (*(_number(bound) for bound in found.bounds), "+Inf")
    for bound, count in zip(bounds, accumulate(counts), strict=True):
        yield "_bucket", {**labels, "le": bound}, count
    yield "_count", labels, sum(counts)
    yield "_sum", labels, found.total


def metrics_text(status: RAGStatusInfo, metrics: MetricsSink | None = None) -> str:
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
