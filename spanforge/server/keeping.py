"""What is kept for a while alone: events, ended jobs and remembered answers."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING, Any, Final

import structlog

from spanforge import _clock
from spanforge.reference.failures import RagFailure
from spanforge.reference.ingesting.jobs import forget_ended
from spanforge.sinks.retention import forget

if TYPE_CHECKING:
    from pathlib import Path

    from spanforge.server.tenants import Tenants

_EVERY_S: Final = 3_600.0
_log: Any = structlog.get_logger("spanforge.server")


async def keep_for(events: Path, tenants: Tenants, keep_s: float) -> None:
    """Forget what is older, now and every hour, until it is cancelled."""
    while True:
        await asyncio.to_thread(forget_older, events, tenants, keep_s)
        await asyncio.sleep(min(_EVERY_S, keep_s))


def forget_older(events: Path, tenants: Tenants, keep_s: float) -> None:
    """Forget what is older. What is in the way of a part is logged, and the next time tried again.

    Args:
        events: The server's own store of events.
        tenants: Its organisations.
        keep_s: Seconds.
    """
    try:
        gone = forget(events, keep_s) if events.is_file() else 0
        before_s = _clock.wall_ns() / 1e9 - keep_s
        jobs = sum(forget_ended(place, before_s) for place in tenants.homes())
    except (sqlite3.Error, OSError, RagFailure) as error:
        _log.error("not all that is too old was forgotten", error=type(error).__name__)
    else:
        _log.info("forgotten", events=gone, jobs=jobs)
    tenants.forget_answers()
