"""The earlier path of `spanforge.metrics`."""

from spanforge.metrics import CONTENT_TYPE, Family, MetricsSink, families, metrics_text

__all__ = ["CONTENT_TYPE", "Family", "MetricsSink", "families", "metrics_text"]
