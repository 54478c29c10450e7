"""Sinks that misbehave on purpose, for the proofs of isolation and of deadlines."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

from spanforge.namespaces.event import Event
from spanforge.sinks.base import BaseSink


class HungSink(BaseSink):
    """Takes a batch, sets `entered`, and never comes back, until `release` is set."""

    def __init__(self, name: str = "hung") -> None:
        self.name = name
        self.entered = threading.Event()
        self.release = threading.Event()
        self.closed = False

    def write(self, _events: Sequence[Event], /) -> None:
        self.entered.set()
        self.release.wait()

    def close(self) -> None:
        self.closed = True


class SlowSink(BaseSink):
    """Appends ids to a file, some seconds after it was asked to."""

    def __init__(self, path: str, seconds: float) -> None:
        self.name = "slow"
        self._path = path
        self._seconds = seconds

    def write(self, events: Sequence[Event], /) -> None:
        time.sleep(self._seconds)
        data = "".join(f"{event.event_id}\n" for event in events).encode()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, data)
        os.close(descriptor)


class EncodingSink(BaseSink):
    """Encodes every event and throws it away: the cost of delivery without the disk's."""

    def __init__(self, name: str = "encoding") -> None:
        self.name = name

    def write(self, events: Sequence[Event], /) -> None:
        for event in events:
            event.encode()


class Scripted(BaseSink):
    """Raises what its script says, write by write; takes everything once the script is at its end."""

    name = "scripted"

    def __init__(self, *script: BaseException | None) -> None:
        self.script = list(script)
        self.writes: list[list[str]] = []
        self.at: list[float] = []
        self.taken: list[str] = []

    def write(self, events: Sequence[Event], /) -> None:
        self.writes.append([event.event_id for event in events])
        self.at.append(time.monotonic())
        error = self.script.pop(0) if self.script else None
        if error is not None:
            raise error
        self.taken += [event.event_id for event in events]
