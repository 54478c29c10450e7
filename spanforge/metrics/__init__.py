"""Counters and histograms of what is traced, taken before sampling: for Prometheus, and for OTLP receivers."""

from spanforge.metrics.meter import PointLedger
from spanforge.metrics.prometheus import CONTENT_TYPE, Family, families, metrics_text
from spanforge.metrics.sink import MetricsSink

__all__ = ["CONTENT_TYPE", "Family", "MetricsSink", "PointLedger", "families", "metrics_text"]
