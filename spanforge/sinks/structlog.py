"""The default sink: events as log entries, through the application's own structlog where that is configured.

Where it is not, structlog would print every level to stdout and spoil pipes; so JSON lines go to stderr then.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from typing import Any, Final, Literal

import structlog

from spanforge._streams import descriptor, put, takes_more
from spanforge._warnings import handlers_of, is_free
from spanforge.exceptions import SinkWriteError
from spanforge.namespaces.event import Event, Identity
from spanforge.sinks.base import BaseSink, Receipt

__all__ = ["StructlogSink"]

Level = Literal["debug", "info", "warning"]

_LEVELS: Final[dict[str, Level]] = {
    "llm.rag.session": "info",
    "llm.rag.escalated": "warning",
    "llm.feedback.submitted": "info",
}
"""Everything else is a stage of a session, whose summary follows: debug."""

_REMEMBERED: Final = 10_000
_PATIENCE_S: Final = 0.2
_BELOW: Final = "log_level"
_MAY_PASS: Final = frozenset({"logger_disabled", "stream_full", "short_write"})


class StructlogSink(BaseSink):
    """Logs events: stages at debug, summaries and feedback at info, escalations at warning.

    Where `structlog.is_configured()`, an entry is `log.<level>(event_type, **fields)` on the logger
    `spanforge`. The fields are those of the envelope under their own names, `payload` as a dict, and
    `event_timestamp` for the time the event was made, because `timestamp` usually is the time of logging.

    Otherwise each event from info up is one JSON line on stderr: `level`, `event` (the event type), and the
    whole envelope, so that `read_events` can read the lines again.

    What a level filters is dropped (`log_level`), which is no loss. A logger that is disabled, as `dictConfig` does
    with those that exist, or a stream that is full, is a sink that is down: events wait until it is back.

    Args:
        name: What the ledger calls it.
    """

    def __init__(self, *, name: str = "structlog") -> None:
        self.name = name
        self.after_fork()

    def after_fork(self) -> None:
        """A batch that was half logged is the parent's."""
        self._logged: set[Identity] = set()
        self._torn: tuple[Identity, bytes] = (("", "", ""), b"")

    def write(self, events: Sequence[Event], /) -> Receipt | None:
        """Log the events.

        Returns:
            None where all of them were logged; else a receipt that counts those below the level as dropped.

        Raises:
            SinkWriteError: There is no stderr, a stream is full, or the logger is disabled; says what became of the
                events before.
        """
        # A processor of the application may raise anything at any event. The batch is then tried again, and
        # what the first try has logged is not logged twice.
        if len(self._logged) > _REMEMBERED:
            self._logged.clear()
        log = _bound() if structlog.is_configured() else None
        below = 0
        for done, event in enumerate(events):
            level = _LEVELS.get(event.event_type, "debug")
            problem = self._print(event, level) if log is None else self._log(log, event, level)
            below += problem == _BELOW
            if problem and problem != _BELOW:
                raise SinkWriteError(
                    problem, delivered=done - below, dropped={_BELOW: below}, retryable=problem in _MAY_PASS
                )
        self._logged.difference_update(event.identity for event in events)
        return Receipt(delivered=len(events) - below, dropped={_BELOW: below}) if below else None

    def _log(self, log: Any, event: Event, level: Level) -> str:
        """Log an event; return why it was not, if it was not."""
        logger: object = getattr(log, "_logger", None)
        method = getattr(log, level)
        if isinstance(logger, logging.Logger):
            if logger.disabled:
                return "logger_disabled"
            if not _reaches_anybody(logger, level):
                return _BELOW
        elif getattr(method, "__name__", "") == "_nop":
            return _BELOW
        if event.identity in self._logged:
            return ""
        if not _has_room(logger):
            return "stream_full"
        method(event.event_type, **_fields(event))
        self._logged.add(event.identity)
        return ""

    def _print(self, event: Event, level: Level) -> str:
        """Write an event to stderr; return why it was not, if it was not."""
        if level == "debug":
            return _BELOW
        stream = sys.stderr  # looked up at each write: test runners and servers replace it
        line = {"level": level, "event": event.event_type, **event.to_dict()}
        text = json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n"
        try:
            # Typed as never None, but it is under pythonw.
            fd = descriptor(stream)
            if fd is not None:
                return "" if self._put(fd, event.identity, text.encode()) else "stream_full"
            written: object = stream.write(text)
            stream.flush()
        except (AttributeError, ValueError):
            return "stderr is closed"
        except OSError as error:
            return type(error).__name__
        return "" if written is None or written == len(text) else "short_write"

    def _put(self, fd: int, identity: Identity, line: bytes) -> bool:
        """Write a line, after what is left of one that a full pipe has torn; tell whether all of it was taken."""
        torn, rest = self._torn
        if rest:
            self._torn = torn, rest[put(fd, rest, _PATIENCE_S) :]
            if self._torn[1]:
                return False
            self._logged.add(torn)
        if identity in self._logged:
            return True
        taken = put(fd, line, _PATIENCE_S)
        if 0 < taken < len(line):
            self._torn = identity, line[taken:]
        elif taken:
            self._logged.add(identity)
        return taken == len(line)


def _bound() -> Any:
    wrapper = structlog.get_config()["wrapper_class"]
    if isinstance(wrapper, type) and issubclass(wrapper, structlog.stdlib.AsyncBoundLogger):
        # It is made and used in a running event loop alone, and a worker's thread has none.
        return structlog.wrap_logger(
            None, wrapper_class=structlog.stdlib.BoundLogger, logger_factory_args=("spanforge",)
        ).bind()
    return structlog.get_logger("spanforge").bind()


def _reaches_anybody(logger: logging.Logger, level: Level) -> bool:
    """Tell whether any handler's level lets a record of this level pass, and the logger's own."""
    number = logging.getLevelNamesMapping()[level.upper()]
    handlers = list(handlers_of(logger)) or [handler for handler in (logging.lastResort,) if handler]
    return logger.isEnabledFor(number) and any(number >= handler.level for handler in handlers)


def _has_room(logger: object) -> bool:
    """Tell whether what a logger writes to would take a line, so that no worker is stuck in a handler."""
    if isinstance(logger, logging.Logger):
        return all(is_free(handler) for handler in handlers_of(logger))
    return takes_more(getattr(logger, "_file", None), _PATIENCE_S)


def _fields(event: Event) -> dict[str, Any]:
    fields = event.to_dict()
    del fields["event_type"]
    fields["event_timestamp"] = fields.pop("timestamp")
    if "event" in fields:  # taken by structlog; only a newer envelope could have such a field
        fields["event_"] = fields.pop("event")
    return fields
