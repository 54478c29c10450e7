"""Sessions that a human should look at, and what they have in common."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from spanforge.viewer.filters import Filter
from spanforge.viewer.queries import WORTH_A_LOOK, SessionRow, session_rows, where
from spanforge.viewer.store import Progress, ViewedStore

__all__ = ["SharedName", "Worst", "worst", "worst_rows"]

_FEWEST: Final = 2
_BEYOND_CHANCE: Final = 3.0
"""Standard errors: names are many, and some of them stand out by one or two for nothing."""
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class SharedName:
    """A retriever, model, source or tag that they have more often than all sessions do.

    Attributes:
        kind: `retriever`, `model`, `source` or `tag`.
        name: Which one.
        worst: How many of them have it.
        sessions: How many of all sessions have it.
        lift: Its share of them, divided by its share of all sessions.
    """

    kind: str
    name: str
    worst: int
    sessions: int
    lift: float


@dataclass(frozen=True, slots=True)
class Worst:
    """What a human should look at.

    Attributes:
        found: How many sessions that are; `sessions` is of how many.
        rows: Some of them, those with the most reasons first.
        shared: What they share, beyond what chance alone brings together; the most frequent beyond that first.
        progress: What could not be read.
    """

    found: int
    sessions: int
    rows: list[SessionRow]
    shared: list[SharedName]
    progress: Progress

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "damaged": self.progress.damaged,
            "found": self.found,
            "sessions": self.sessions,
            "worst": [{**asdict(row), "reasons": row.reasons} for row in self.rows],
            "shared": [asdict(one) for one in self.shared],
        }


def worst(store: Path, wanted: Filter, most: int) -> Worst:
    """Read a store whole and return what of it a human should look at.

    Args:
        store: A database of the sqlite sink, a jsonl file, a folder or a pattern.
        wanted: Which sessions.
        most: How many to return.
    """
    with closing(ViewedStore(store)) as viewed:
        viewed.catch_up()
        with viewed.reading() as connection:
            condition, values = where(None, wanted)
            sessions, found = connection.execute(
                f"SELECT count(*), count(*) FILTER (WHERE {WORTH_A_LOOK}) FROM session WHERE {condition}", values
            ).fetchone()
            rows = worst_rows(connection, None, wanted, most)
            shared = [*_shared(connection, wanted, found, sessions)]
            return Worst(found, sessions, rows, shared[:_MOST], viewed.progress())


def worst_rows(connection: sqlite3.Connection, org: str | None, wanted: Filter, most: int) -> list[SessionRow]:
    """Return the sessions that a human should look at first."""
    return session_rows(connection, org, replace(wanted, mark="worth a look", sort="worst", order="asc"), most)


def _shared(connection: sqlite3.Connection, wanted: Filter, found: int, sessions: int) -> Iterator[SharedName]:
    """Give what the sessions found share, those first of which there are the most more than were to be expected."""
    if not 0 < found < sessions:
        return
    condition, values = where(None, wanted)
    counts = f"count(*), count(*) FILTER (WHERE {WORTH_A_LOOK})"
    names = connection.execute(
        f"SELECT 'retriever', retriever_name, {counts} FROM session WHERE {condition} AND retriever_name <> '' "
        f"GROUP BY 2 UNION ALL SELECT kind, text, {counts} FROM mention JOIN session ON session.id = mention.session "
        f"WHERE kind IN ('model', 'source', 'tag') AND {condition} GROUP BY 1, 2",
        [*values, *values],
    )
    beyond: list[tuple[float, SharedName]] = []
    for kind, name, count, worst_of_it in names:
        share = count / sessions
        expected = found * share
        # As among as many sessions drawn without looking: hypergeometric.
        spread = math.sqrt(expected * (1 - share) * (sessions - found) / (sessions - 1))
        if worst_of_it >= _FEWEST and worst_of_it - expected > _BEYOND_CHANCE * spread:
            beyond.append((worst_of_it - expected, SharedName(kind, name, worst_of_it, count, worst_of_it / expected)))
    yield from (one for _, one in sorted(beyond, key=lambda pair: (-pair[0], pair[1].kind, pair[1].name)))
