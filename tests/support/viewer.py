"""Stores for the viewer's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from starlette.testclient import TestClient

from spanforge.namespaces.event import Event
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink

Look = Callable[..., TestClient]


def write(path: Path, events: Iterable[Event]) -> Path:
    """Store events as the sink for the path's suffix does."""
    sink = SqliteSink(path) if path.suffix == ".db" else JsonlSink(path)
    sink.write(list(events))
    sink.close()
    return path
