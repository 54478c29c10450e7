"""What is known of delivery: the ledgers of this process, and what the stored events themselves tell."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from spanforge.sdk import sf_rag
from spanforge.server.viewer.index.writer import storable

__all__ = ["Ledger", "StoreFacts", "ledgers", "store_facts"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of the events meant for one sink: accepted = delivered + failed + dropped + pending."""

    sink: str
    accepted: int
    delivered: int
    failed: int
    dropped: Mapping[str, int]
    pending: int
    last_error: str

    @property
    def lost(self) -> int:
        """Events that never will arrive, other than by sampling, which was asked for."""
        return self.failed + sum(count for reason, count in self.dropped.items() if reason != "sampled")


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


def ledgers() -> list[Ledger]:
    """Return the ledgers of this process; none where it has emitted nothing."""
    status = sf_rag.get_status()
    return [
        Ledger(sink=name, **ledger.to_dict())  # type: ignore[arg-type]  the fields of the ledger, by the same names
        for name, ledger in status.sinks.items()
        if ledger.accepted
    ]


def store_facts(connection: sqlite3.Connection, org: str | None) -> StoreFacts:
    """Return what the store tells of the events that may be seen."""
    mine, values = ("1", []) if org is None else ("org = ?", [storable(org)])
    by_type: list[tuple[str, int]] = connection.execute(
        f"SELECT what, sum(times) FROM tally WHERE what <> '' AND {mine} GROUP BY what ORDER BY 2 DESC, 1", values
    ).fetchall()
    sessions, unended, bare = connection.execute(
        f"SELECT count(*), total(NOT ended), total(ended AND events = 1) FROM session WHERE {mine}", values
    ).fetchone()
    return StoreFacts(sum(times for _, times in by_type), by_type, sessions, int(unended), int(bare))
