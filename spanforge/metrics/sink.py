"""A sink to be scraped: it keeps no events, and measures all that was traced, sampled out or not."""

from __future__ import annotations

from collections.abc import Sequence

from spanforge.metrics.meter import Meter
from spanforge.metrics.own import OWN
from spanforge.namespaces.event import Event

__all__ = ["MetricsSink"]


class MetricsSink:
    """Measures what is traced; `metrics_text` gives it out. Give it to `configure(sinks=…)`.

    Args:
        name: What the ledger calls it.

    Attributes:
        meter: Gets every event before sampling, and is read by `spanforge.metrics`.
    """

    def __init__(self, name: str = "metrics") -> None:
        self.name = name
        self.meter = Meter(OWN)

    def write(self, _events: Sequence[Event], /) -> None:
        """Add up what was noted. The events were measured when they were made."""
        self.meter.read()

    def idle(self) -> None:
        """Add up what was noted."""
        self.meter.read()

    def close(self) -> None:
        """Nothing is held; what was measured stays to be read."""

    def after_fork(self) -> None:
        """Begin at zero in a child."""
        self.meter.reset()
