"""What arrived, what was lost, and what cannot be known from here: this process's ledgers, and what the store tells."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from spanforge import SinkLedger
from spanforge._text import storable
from spanforge.metrics import PointLedger
from spanforge.sdk import sf_rag
from spanforge.viewer.shell import shell_of

__all__ = ["delivery"]


def delivery(request: Request) -> Response:
    """Show the ledgers of this process, and what the store tells.

    A ledger counts the events of everybody, so one organisation is not shown it.
    """
    shell = shell_of(request)
    org = shell.org(request)
    with shell.asking() as connection:
        facts = store_facts(connection, org)
    return shell.page(
        request, "delivery.html", active="delivery", facts=facts, ledgers=ledgers() if org is None else []
    )


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What a store tells of its own events.

    Attributes:
        by_type: Distinct events by type.
        sessions: Sessions; `unended` is how many have no summary, `bare` how many have nothing but one.
    """

    events: int
    by_type: list[tuple[str, int]]
    sessions: int
    unended: int
    bare: int


def ledgers() -> list[tuple[str, SinkLedger | PointLedger, str]]:
    """Return name, ledger and state of each sink of this process, of events and of metric points.

    A state is `ok`, `down`, or `lossy` where something was lost or a worker failed. What was given nothing is left out.
    """
    status = sf_rag.get_status()
    kept = [("", status.sinks), ("metrics of ", status.metrics)]
    return [
        (kind + name, ledger, _state(ledger))
        for kind, found in kept
        for name, ledger in found.items()
        if ledger.accepted
    ]


def _state(ledger: SinkLedger | PointLedger) -> str:
    down, degraded = (ledger.down, ledger.degraded) if isinstance(ledger, SinkLedger) else (False, False)
    return "down" if down else "lossy" if degraded or ledger.lost else "ok"


def store_facts(connection: sqlite3.Connection, org: str | None) -> StoreFacts:
    """Return what the store tells of the events that may be seen."""
    mine, values = ("1", []) if org is None else ("org_id = ?", [storable(org)])
    by_type: list[tuple[str, int]] = connection.execute(
        f"SELECT event_type, sum(times) FROM tally WHERE {mine} GROUP BY event_type ORDER BY 2 DESC, 1", values
    ).fetchall()
    sessions, unended, bare = connection.execute(
        f"SELECT count(*), total(NOT ended), total(ended AND events = 1) FROM session WHERE {mine}", values
    ).fetchone()
    return StoreFacts(sum(times for _, times in by_type), by_type, sessions, int(unended), int(bare))
