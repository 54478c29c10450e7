"""The one place that states the release."""

__version__ = "2.0.0"
