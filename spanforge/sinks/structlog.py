"""The default sink: events as log entries, through the application's own structlog where that is configured.

Where it is not, structlog would print every level to stdout and spoil pipes; so JSON lines go to stderr then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final, Literal

import structlog

from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event
from spanforge.sinks.base import BaseSink

__all__ = ["StructlogSink"]

Level = Literal["debug", "info", "warning"]

_LEVELS: Final[dict[str, Level]] = {
    "llm.rag.session": "info",
    "llm.rag.escalated": "warning",
    "llm.feedback.submitted": "info",
}
"""Everything else is a stage of a session, whose summary follows: debug."""

_REMEMBERED: Final = 10_000


class StructlogSink(BaseSink):
    """Logs events: stages at debug, summaries and feedback at info, escalations at warning.

    Where `structlog.is_configured()`, an entry is `log.<level>(event_type, **fields)` on the logger
    `spanforge`. The fields are those of the envelope under their own names, `payload` as a dict, and
    `event_timestamp` for the time the event was made, because `timestamp` usually is the time of logging.

    Otherwise each event from info up is one JSON line on stderr: `level`, `event` (the event type), and the
    whole envelope, so that `read_events` can read the lines again.

    Args:
        name: What the ledger calls it.
    """

    def __init__(self, *, name: str = "structlog") -> None:
        self.name = name
        self._logged: set[str] = set()

    def write(self, events: Sequence[Event], /) -> None:
        """Log the events.

        Raises:
            SinkWriteError: There is no stderr to write to.
        """
        if structlog.is_configured():
            self._log(events)
        else:
            _print(events)

    def _log(self, events: Sequence[Event]) -> None:
        # A processor of the application may raise anything at any event. The batch is then tried again, and
        # what the first try has logged is not logged twice.
        if len(self._logged) > _REMEMBERED:
            self._logged.clear()
        log = _logger()
        for event in events:
            if event.event_id not in self._logged:
                getattr(log, _level(event))(event.event_type, **_fields(event))
                self._logged.add(event.event_id)
        self._logged.difference_update(event.event_id for event in events)

    def after_fork(self) -> None:
        """A batch that was half logged is the parent's."""
        self._logged = set()


def _logger() -> Any:
    wrapper = structlog.get_config()["wrapper_class"]
    if isinstance(wrapper, type) and issubclass(wrapper, structlog.stdlib.AsyncBoundLogger):
        # It is made and used in a running event loop alone, and a worker's thread has none.
        return structlog.wrap_logger(
            None, wrapper_class=structlog.stdlib.BoundLogger, logger_factory_args=("spanforge",)
        )
    return structlog.get_logger("spanforge")


def _level(event: Event) -> Level:
    return _LEVELS.get(event.event_type, "debug")


def _fields(event: Event) -> dict[str, Any]:
    fields = event.to_dict()
    del fields["event_type"]
    fields["event_timestamp"] = fields.pop("timestamp")
    if "event" in fields:  # taken by structlog; only a newer envelope could have such a field
        fields["event_"] = fields.pop("event")
    return fields


def _print(events: Sequence[Event]) -> None:
    lines = [
        json.dumps(
            {"level": level, "event": event.event_type, **event.to_dict()},
            allow_nan=False,
            separators=(",", ":"),
        )
        for event in events
        if (level := _level(event)) != "debug"
    ]
    if not lines:
        return
    stream = sys.stderr  # looked up at each write: test runners and servers replace it
    problem = ""
    try:
        # One write for whole lines: what other threads print does not end up inside one. Typed as never None,
        # but it is under pythonw.
        stream.write("\n".join([*lines, ""]))
        stream.flush()
    except (AttributeError, ValueError):
        problem = "stderr is closed"
    except OSError as error:
        problem = type(error).__name__
    if problem:
        raise SinkWriteError(problem, retryable=False)
