"""All that a server in this process says beside its answers: its log, in the form `serve` gives it, and its events."""

from __future__ import annotations

import io
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from spanforge.server.logs import Lines
from spanforge.testing import CapturedEvents, capture, find_canary

if TYPE_CHECKING:
    from collections.abc import Generator


@dataclass(frozen=True, slots=True)
class Overheard:
    """What was said so far."""

    log: io.StringIO
    events: CapturedEvents

    def assert_silent_about(self, *texts: str) -> None:
        """Check that there is something to look through, and none of these texts in it."""
        log = self.log.getvalue()
        assert '"event": "request"' in log
        for text in texts:
            assert not find_canary(text, log), f"a text stands in the log as {find_canary(text, log)[0]}"
        self.events.assert_no_text(*texts)


@contextmanager
def overhearing() -> Generator[Overheard]:
    """Listen for the length of a block, to every logger at every level."""
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(Lines())
    root = logging.getLogger()
    level, before = root.level, structlog.get_config()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.WriteLoggerFactory(log),
    )
    try:
        with capture() as events:
            yield Overheard(log, events)
    finally:
        structlog.configure(**before)
        root.setLevel(level)
        root.removeHandler(handler)
