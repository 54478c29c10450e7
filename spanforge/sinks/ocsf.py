"""OCSF as JSON lines: one security event for each retrieval, in a file that an agent ships.

OCSF has a class for retrievals; the other stages lend them their facts and have no line of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from spanforge.conventions.ocsf import datastore_events, retrieval_events
from spanforge.conventions.session import Session
from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks._append import AppendFile
from spanforge.sinks._files import absolute, code_of
from spanforge.sinks._sessions import SessionMemory
from spanforge.sinks.base import BaseSink

__all__ = ["OcsfSink"]

_FLAVOURS: Final[dict[str, Callable[[Session], list[dict[str, Any]]]]] = {
    "ocsf": datastore_events,
    "ocsf-aitf": retrieval_events,
}


class OcsfSink(BaseSink):
    """Appends OCSF events to a file.

    Args:
        path: The file; a new one is the owner's alone (mode 0600).
        flavour: `ocsf` for class 6005 of OCSF 1.8.0, `ocsf-aitf` for class 7004 as AITF numbers it.

    Raises:
        ConfigError: There is no such flavour, or the path cannot be one.
    """

    whole_sessions = True

    def __init__(self, path: str | os.PathLike[str], *, flavour: str = "ocsf") -> None:
        translate = _FLAVOURS.get(flavour)
        if translate is None:
            raise ConfigError("flavour: use ocsf or ocsf-aitf")
        self._translate = translate
        self._path = absolute(path)
        self._memory = SessionMemory()
        self._file: AppendFile | None = None
        self.name = f"{flavour}:{self._path.name}"

    def write(self, events: Sequence[Event], /) -> None:
        """Append a line for each retrieval among the events.

        Raises:
            SinkWriteError: The lines of the events from `delivered` on are not whole in the file.
        """
        lines: dict[str, bytes] = {}
        for session in self._memory.sessions(events):
            for record in self._translate(session):
                lines[record["metadata"]["uid"]] = json.dumps(record, separators=(",", ":")).encode("ascii")
        problem, whole = "", 0
        try:
            if lines:
                whole = self._opened().append(list(lines.values()))
        except OSError as error:
            problem = code_of(error)
        if whole < len(lines):
            first_missing = list(lines)[whole]
            place = next(n for n, event in enumerate(events) if event.event_id == first_missing)
            raise SinkWriteError(problem or "short write", delivered=place)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def after_fork(self) -> None:
        """Let the child open the file anew."""
        self._file = None

    def _opened(self) -> AppendFile:
        if self._file is not None and self._file.is_stale():
            self.close()
        if self._file is None:
            self._file = AppendFile(self._path)
        return self._file
