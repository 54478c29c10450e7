"""A collector for prometheus-client: our metrics in the registry that an application already serves."""

from __future__ import annotations

from collections.abc import Iterator

from spanforge.exceptions import MissingExtraError
from spanforge.metrics import MetricsSink, families
from spanforge.sdk import sf_rag

try:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector
except ImportError:
    raise MissingExtraError("The Prometheus collector", "prometheus") from None

__all__ = ["SpanforgeCollector"]


class SpanforgeCollector(Collector):
    """Register it: `REGISTRY.register(SpanforgeCollector(metrics))`.

    Args:
        metrics: The metrics sink that `configure()` was given; without it there are the ledger and the sessions.
    """

    def __init__(self, metrics: MetricsSink | None = None) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Yield every metric as it is now."""
        for family in families(sf_rag.get_status(), self._metrics):
            metric = Metric(family.name, family.help, family.kind)
            for suffix, labels, value in family.samples:
                metric.add_sample(family.name + suffix, dict(labels), value)
            yield metric

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without samples, so that registering asks nobody for figures."""
        return iter(())
