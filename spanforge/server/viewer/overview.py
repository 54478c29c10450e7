"""The figures of the overview: one set of sessions, looked at from several sides."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spanforge.server.viewer.filters import Filter
from spanforge.server.viewer.index.figures import STAGES
from spanforge.server.viewer.queries import SessionRow, session_page, where

__all__ = ["Bucket", "Overview", "Percentiles", "SourceUse", "overview", "percentile"]

_BUCKETS: Final = 48
_FEWEST: Final = 24
_BINS: Final = 10
_TOP: Final = 8
_WORST: Final = 8
_WIDTHS_S: Final = (
    1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000,
    31_536_000,
)  # fmt: skip
"""Lengths of a bucket in seconds that people can read on an axis."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Sessions that began within one span of time.

    Attributes:
        start: Microseconds since the epoch.
        ok: How many ended well; `partial` and `error` likewise.
        tokens: Prompt and output tokens.
    """

    start: int
    ok: int
    partial: int
    error: int
    tokens: int

    @property
    def sessions(self) -> int:
        """All of them."""
        return self.ok + self.partial + self.error


@dataclass(frozen=True, slots=True)
class Percentiles:
    """What a stage takes in a session, in microseconds: nearest rank over the sessions that have it."""

    stage: str
    sessions: int
    p50: int
    p90: int
    p99: int


@dataclass(frozen=True, slots=True)
class SourceUse:
    """How many chunks were retrieved from a source, and in how many sessions."""

    source: str
    chunks: int
    sessions: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Figures of a set of sessions.

    Attributes:
        width: Length of a bucket in microseconds.
        grounding: Sessions by mean grounding score, in ten bins of a tenth; the last takes 1.0.
        grounding_mean: Mean over those sessions.
        retrieving: Sessions that retrieved; `empty` is how many of them got no chunk at all.
        worst: Sessions in error first, then those with the lowest grounding.
    """

    sessions: int
    ok: int
    partial: int
    error: int
    open: int
    input: int
    output: int
    grounding: tuple[int, ...]
    grounding_mean: float | None
    retrieving: int
    empty: int
    width: int
    volume: list[Bucket]
    latency: list[Percentiles]
    sources: list[SourceUse]
    worst: list[SessionRow]

    @property
    def measured(self) -> int:
        """Sessions with a grounding score."""
        return sum(self.grounding)


def overview(connection: sqlite3.Connection, org: str | None, wanted: Filter) -> Overview:
    """Return the figures of the sessions that a filter lets through."""
    condition, values = where(org, wanted)
    # Floats, because SQLite fails a whole query over one sum beyond 64 bits; exact up to 2 ** 53 all the same.
    head = connection.execute(
        "SELECT count(*), total(status = 0), total(status = 1), total(status = 2), total(NOT ended), total(input), "
        "total(output), avg(grounding), total(retrievals > 0), total(retrievals > 0 AND chunks = 0), min(started), "
        f"max(started) FROM session WHERE {condition}",
        values,
    ).fetchone()
    sessions, ok, partial, error, still_open, prompt, output, mean, retrieving, empty, first, last = head
    width, volume = _volume(connection, condition, values, first or 0, last or 0) if sessions else (0, [])
    return Overview(
        sessions=sessions,
        ok=int(ok),
        partial=int(partial),
        error=int(error),
        open=int(still_open),
        input=int(prompt),
        output=int(output),
        grounding=_grounding(connection, condition, values),
        grounding_mean=mean,
        retrieving=int(retrieving),
        empty=int(empty),
        width=width,
        volume=volume,
        latency=_latency(connection, condition, values),
        sources=_sources(connection, condition, values),
        worst=_worst(connection, org, wanted),
    )


def percentile(ordered: Sequence[int], share: float) -> int:
    """Return the nearest-rank percentile: the smallest value that at least `share` of all do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _volume(
    connection: sqlite3.Connection, condition: str, values: list[Any], first: int, last: int
) -> tuple[int, list[Bucket]]:
    spread_s = (last - first) / 1_000_000
    width = next((w for w in _WIDTHS_S if spread_s / w < _BUCKETS), _WIDTHS_S[-1]) * 1_000_000
    found: dict[int, Bucket] = {}
    for number, ok, partial, error, tokens in connection.execute(
        "SELECT started / ?, total(status = 0), total(status = 1), total(status = 2), total(input) + total(output) "
        f"FROM session WHERE {condition} GROUP BY 1",
        (width, *values),
    ):
        found[number] = Bucket(number * width, int(ok), int(partial), int(error), int(tokens))
    low, high = first // width, last // width
    low = max(0, min(low, high + 1 - _FEWEST))
    numbers = range(low, high + 1) if high - low < 2 * _BUCKETS else sorted(found)
    return width, [found.get(number) or Bucket(number * width, 0, 0, 0, 0) for number in numbers]


def _grounding(connection: sqlite3.Connection, condition: str, values: list[Any]) -> tuple[int, ...]:
    bins = [0] * _BINS
    for number, count in connection.execute(
        f"SELECT min(CAST(grounding * {_BINS} AS INTEGER), {_BINS - 1}), count(*) FROM session "
        f"WHERE {condition} AND grounding IS NOT NULL GROUP BY 1",
        values,
    ):
        bins[number] = count
    return tuple(bins)


def _latency(connection: sqlite3.Connection, condition: str, values: list[Any]) -> list[Percentiles]:
    columns = ", ".join(f"{stage}_us" for stage in STAGES)
    rows = connection.execute(f"SELECT {columns}, latency FROM session WHERE {condition}", values).fetchall()
    found: list[Percentiles] = []
    for stage, column in zip((*STAGES, "all stages"), zip(*rows, strict=True), strict=False):
        ordered = sorted(value for value in column if value is not None)
        if ordered:
            p50, p90, p99 = (percentile(ordered, share) for share in (0.5, 0.9, 0.99))
            found.append(Percentiles(stage, len(ordered), p50, p90, p99))
    return found


def _sources(connection: sqlite3.Connection, condition: str, values: list[Any]) -> list[SourceUse]:
    narrowed = "" if condition == "1" else f"AND mention.session IN (SELECT id FROM session WHERE {condition})"
    rows = connection.execute(
        "SELECT text, sum(times) AS chunks, count(*) FROM mention JOIN name ON name.id = mention.name "
        f"WHERE kind = 'source' {narrowed} GROUP BY name.id ORDER BY chunks DESC, text LIMIT {_TOP}",
        values,
    )
    return [SourceUse(*row) for row in rows]


def _worst(connection: sqlite3.Connection, org: str | None, wanted: Filter) -> list[SessionRow]:
    failed = session_page(connection, org, replace(wanted, status="error", sort="started"), size=_WORST).rows
    low = session_page(
        connection, org, replace(wanted, status="", sort="grounding", order="asc", grounding_max=0.5), size=_WORST
    ).rows
    keys = {row.key for row in failed}
    return (failed + [row for row in low if row.key not in keys])[:_WORST]
