"""OCSF as JSON lines: the security events of sessions, in a file that an agent ships.

Retrievals, generations and escalations have a line each; the other stages lend them their facts and have none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from spanforge.exceptions import ConfigError, SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks._append import AppendFile
from spanforge.sinks._files import absolute, code_of
from spanforge.sinks._sessions import SessionMemory
from spanforge.sinks.base import BaseSink
from spanforge.standards.ocsf import security_events
from spanforge.standards.ocsf_aitf import retrieval_events, uuid_of
from spanforge.standards.tree.session import Session

__all__ = ["OcsfSink"]

_FLAVOURS: Final[dict[str, tuple[Callable[[Session], list[dict[str, Any]]], Callable[[str], str]]]] = {
    "ocsf": (security_events, str),
    "ocsf-aitf": (retrieval_events, uuid_of),
}
"""What each flavour writes, and the form that it gives an event's id."""


class OcsfSink(BaseSink):
    """Appends OCSF events to a file.

    Args:
        path: The file; a new one is the owner's alone (mode 0600).
        flavour: `ocsf` for the classes of OCSF 1.8.0, `ocsf-aitf` for retrievals alone, as AITF numbers them.

    Raises:
        ConfigError: There is no such flavour, or the path cannot be one.
    """

    whole_sessions = True

    def __init__(self, path: str | os.PathLike[str], *, flavour: str = "ocsf") -> None:
        if flavour not in _FLAVOURS:
            raise ConfigError("flavour: use ocsf or ocsf-aitf")
        self._translate, self._uid_of = _FLAVOURS[flavour]
        self._path = absolute(path)
        self._memory = SessionMemory()
        self._file: AppendFile | None = None
        self.name = f"{flavour}:{self._path.name}"

    def write(self, events: Sequence[Event], /) -> None:
        """Append the lines of the events that have one.

        Raises:
            SinkWriteError: The lines of the events from `delivered` on are not whole in the file.
        """
        lines: dict[tuple[tuple[str, str], str], bytes] = {}
        for key, session in self._memory.sessions(events).items():
            for record in self._translate(session):
                lines[key, record["metadata"]["uid"]] = json.dumps(record, separators=(",", ":")).encode("ascii")
        problem, whole = "", 0
        try:
            if lines:
                whole = self._opened().append(list(lines.values()))
        except OSError as error:
            problem = code_of(error)
        if whole < len(lines):
            first_missing = list(lines)[whole]
            uids = [(event.session_key, self._uid_of(event.event_id)) for event in events]
            raise SinkWriteError(problem or "short write", delivered=uids.index(first_missing))

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
