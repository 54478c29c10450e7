"""Stores for the viewer's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from spanforge.namespaces.event import Event
from spanforge.sinks.jsonl import JsonlSink
from spanforge.sinks.sqlite import SqliteSink

if TYPE_CHECKING:
    from starlette.testclient import TestClient

_BATCH = 10_000
"""No more than a store adds up in one transaction; a worker's batches are much smaller."""
Look = Callable[..., "TestClient"]


def write(path: Path, events: Iterable[Event]) -> Path:
    """Store events as the sink for the path's suffix does."""
    sink = SqliteSink(path) if path.suffix == ".db" else JsonlSink(path)
    left = iter(events)
    sink.write(list(islice(left, _BATCH)))
    while batch := list(islice(left, _BATCH)):
        sink.write(batch)
    sink.close()
    return path
