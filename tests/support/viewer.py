"""Stores for the viewer's tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spanforge.namespaces.event import Event
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink


def write(path: Path, events: Iterable[Event]) -> Path:
    """Store events as the sink for the path's suffix does."""
    sink = SqliteSink(path) if path.suffix == ".db" else JsonlSink(path)
    sink.write(list(events))
    sink.close()
    return path
