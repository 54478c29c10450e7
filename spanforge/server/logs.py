"""Where a server's own log goes: one JSON object a line on stderr, without anything that might quote a request.

The message of an error may hold the value that caused it, so of an error only its class and its place are written.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import Final, TypeAlias

import structlog

from spanforge import _clock

_Failure: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_SELDOM_S: Final = 10.0
"""Seconds in which a library's message is logged once."""
_REMEMBERED: Final = 256


class Lines(logging.Formatter):
    """Writes records of the standard library's loggers as lines of JSON, errors without their message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {"event": record.getMessage(), "level": record.levelname.lower(), "logger": record.name}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)

    def formatException(self, ei: _Failure) -> str:  # noqa: N802  the name is the standard library's
        """Return class and place of an error."""
        kind, _, trace = ei
        place = traceback.extract_tb(trace)[-1:] if trace is not None else []
        where = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in place)
        return f"{kind.__name__ if kind is not None else 'no error'}{where}"


class Seldom(logging.Filter):
    """Lets a record pass once in a while: what strangers can make a library say must not fill the disk."""

    def __init__(self) -> None:
        super().__init__()
        self._said: OrderedDict[tuple[str, str], float] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the same was not logged shortly before."""
        key, now = (record.name, str(record.msg)), _clock.monotonic()
        if now - self._said.get(key, -_SELDOM_S) < _SELDOM_S:
            return False
        self._said[key] = now
        self._said.move_to_end(key)
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        return True


def configure_logging() -> None:
    """Send what this process logs to stderr. For processes that are a server and nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    handler.addFilter(Seldom())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
