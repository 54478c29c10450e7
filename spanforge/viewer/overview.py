"""The figures of the overview: one set of sessions, looked at from several sides."""

# ruff: noqa: S608  every query is put together of our own names alone; values are always bound
from __future__ import annotations

import math
import sqlite3
from dataclasses import dataclass
from typing import Any, Final

from spanforge.analysis.figures import PERCENTILES, percentile
from spanforge.namespaces.stages import STAGE_WORDS
from spanforge.viewer.filters import NAMES, Filter
from spanforge.viewer.queries import EMPTY, SessionRow, where
from spanforge.viewer.worst import worst_rows

__all__ = ["Bucket", "Group", "Overview", "Percentiles", "SourceUse", "overview"]

_BUCKETS: Final = 48
_FEWEST: Final = 24
_BINS: Final = 10
_TOP: Final = 8
_WORST: Final = 8
_GROUPS: Final = 12
_Z: Final = 1.96
_LATENCY: Final = "avg(NULLIF(total_latency_ms, 0)) * 1000"
_EMPTY: Final = f"count(*) FILTER (WHERE {EMPTY})"
_ESCALATED: Final = "count(*) FILTER (WHERE escalations > 0)"
_OK, _PARTIAL, _ERROR = (f"count(*) FILTER (WHERE status = '{status}')" for status in ("ok", "partial", "error"))
# Added up as floats, because SQLite fails a whole query over one sum beyond 64 bits; exact up to 2 ** 53 all the same.
_INPUT, _OUTPUT = (f"CAST(total(total_{way}_tokens) AS INTEGER)" for way in ("input", "output"))
_HEAD: Final = {
    "sessions": "count(*)", "ok": _OK, "partial": _PARTIAL, "error": _ERROR,
    "open": "count(*) FILTER (WHERE NOT ended)", "input": _INPUT, "output": _OUTPUT,
    "grounding_mean": "avg(avg_grounding_score)", "retrieving": "count(*) FILTER (WHERE retrieval_count > 0)",
    "generating": "count(*) FILTER (WHERE generation_count > 0)", "priced": "count(total_cost_usd)",
    "cost": "sum(total_cost_usd)", "empty": _EMPTY, "escalated": _ESCALATED,
    "rated": "count(rating)", "rating": "avg(rating)",
    "reranked": "count(reordered)", "reordered": "count(*) FILTER (WHERE reordered)",
    **{name: f"CAST(total({name}) AS INTEGER)" for name in ("answers", "cited", "judged", "helpful")},
}  # fmt: skip
"""The figures of `Overview` that one look at the sessions gives."""
_OF_BUCKET: Final = (
    f"{_OK}, {_PARTIAL}, {_ERROR}, CAST(total(total_input_tokens) + total(total_output_tokens) AS INTEGER), "
    f"{_LATENCY}, avg(avg_grounding_score), avg(rating), {_EMPTY}, {_ESCALATED}, avg(total_cost_usd)"
)
_OF_GROUP: Final = (
    f"count(*), {_ERROR}, {_EMPTY}, {_LATENCY}, avg(avg_grounding_score), "
    f"avg(total_input_tokens + total_output_tokens), avg(total_cost_usd), avg(rating), {_ESCALATED}"
)
"""What `Bucket` and `Group` hold behind what tells one from another, in their order."""
_MENTIONED: Final = "session JOIN mention ON mention.session = session.id"
_DAY_US: Final = 86_400_000_000
_APART_US: Final = 366 * _DAY_US
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
        latency: Mean sum of stages, in microseconds; None where no session began. `grounding` and `rating` are means in
            [0, 1] likewise.
        empty: How many found nothing; `escalated` is for how many a human was asked.
        cost: Mean cost in US dollars of those whose cost is known; None where that of none is.
    """

    start: int
    ok: int = 0
    partial: int = 0
    error: int = 0
    tokens: int = 0
    latency: float | None = None
    grounding: float | None = None
    rating: float | None = None
    empty: int = 0
    escalated: int = 0
    cost: float | None = None

    @property
    def sessions(self) -> int:
        """All of them."""
        return self.ok + self.partial + self.error


@dataclass(frozen=True, slots=True)
class Group:
    """The sessions that share a retriever, a model or what else sessions are told apart by.

    Attributes:
        name: What they share; empty for those that have none.
        latency: Mean sum of stages, in microseconds; None where nobody timed any.
        tokens: Mean of prompt and output tokens.
        cost: Mean cost in US dollars of those whose cost is known; None where that of none is.
    """

    name: str
    sessions: int
    error: int
    empty: int
    latency: float | None
    grounding: float | None
    tokens: float
    cost: float | None
    rating: float | None
    escalated: int

    @property
    def margin(self) -> float:
        """Half of the 95 % interval (Wilson) around the share of sessions in error."""
        n, share = self.sessions, self.error / self.sessions
        return _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))


@dataclass(frozen=True, slots=True)
class Percentiles:
    """What a stage takes in a session, in microseconds: nearest rank over the sessions in which it was timed."""

    stage: str
    sessions: int
    p50: int
    p95: int
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
        elsewhere: Sessions that began at other times than the buckets cover: at none that can be read, or, by a wrong
            clock, more than a year apart from most.
        grounding: Sessions by mean grounding score, in ten bins of a tenth; the last takes 1.0.
        grounding_mean: Mean over those sessions.
        generating: Sessions that asked a model; `priced`: how many of them have a known cost, `cost` their sum in US
            dollars, None where there are none.
        retrieving: Sessions that retrieved; `empty` is how many of them found nothing, though nothing failed.
        escalated: Sessions for which a human was asked; `rated`: how many have a rating, `rating` the mean in [0, 1].
        reranked: Sessions in which chunks were reranked; `reordered`: in how many of them a rerank put first what no
            retrieval had.
        answers: Generations that did not fail; `cited`: how many of them name chunks that they used.
        judged: Ratings that are more than words; `helpful`: how many of them find the answer so.
        groups: The same figures by what the filter groups by, the largest groups first.
        failures: Classes of errors with their sessions, the most frequent first.
        worst: Sessions that a human should look at, those with the most reasons first.
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
    generating: int
    priced: int
    cost: float | None
    retrieving: int
    empty: int
    escalated: int
    rated: int
    rating: float | None
    reranked: int
    reordered: int
    answers: int
    cited: int
    judged: int
    helpful: int
    groups: list[Group]
    failures: list[tuple[str, int]]
    width: int
    elsewhere: int
    volume: list[Bucket]
    latency: list[Percentiles]
    sources: list[SourceUse]
    worst: list[SessionRow]

    @property
    def mean_cost(self) -> float | None:
        """What one session cost, of those whose cost is known, in US dollars."""
        return None if self.cost is None else self.cost / self.priced

    @property
    def measured(self) -> int:
        """Sessions with a grounding score."""
        return sum(self.grounding)


def overview(connection: sqlite3.Connection, org: str | None, wanted: Filter) -> Overview:
    """Return the figures of the sessions that a filter lets through."""
    condition, values = where(org, wanted)
    *head, first, last = connection.execute(
        f"SELECT {', '.join(_HEAD.values())}, COALESCE(min(NULLIF(started_us, 0)), 0), COALESCE(max(started_us), 0) "
        f"FROM session WHERE {condition}",
        values,
    ).fetchone()
    found = dict(zip(_HEAD, head, strict=True))
    if last - first >= _WIDTHS_S[-1] * 1_000_000:
        first, last = _most(connection, condition, values)
    width, volume = _volume(connection, condition, values, first, last) if last else (0, [])
    return Overview(
        **found,
        grounding=_grounding(connection, condition, values),
        groups=_groups(connection, condition, values, wanted.group),
        width=width,
        elsewhere=found["sessions"] - sum(bucket.sessions for bucket in volume),
        volume=volume,
        latency=_latency(connection, condition, values),
        sources=_sources(connection, condition, values),
        failures=_failures(connection, condition, values),
        worst=worst_rows(connection, org, wanted, _WORST),
    )


def _volume(
    connection: sqlite3.Connection, condition: str, values: list[Any], first: int, last: int
) -> tuple[int, list[Bucket]]:
    spread_s = (last - first) / 1_000_000
    width = next((w for w in _WIDTHS_S if spread_s / w < _BUCKETS), _WIDTHS_S[-1]) * 1_000_000
    # One whose times cannot be read began at no time.
    rows = connection.execute(
        f"SELECT started_us / ?, {_OF_BUCKET} FROM session WHERE started_us BETWEEN ? AND ? AND {condition} GROUP BY 1",
        (width, first, last, *values),
    )
    found = {number: Bucket(number * width, *figures) for number, *figures in rows}
    low, high = first // width, last // width
    low = max(0, min(low, high + 1 - _FEWEST))
    numbers = range(low, high + 1) if high - low < 2 * _BUCKETS else sorted(found)
    return width, [found.get(number) or Bucket(number * width) for number in numbers]


def _most(connection: sqlite3.Connection, condition: str, values: list[Any]) -> tuple[int, int]:
    """Return when the first and the last began of most sessions: one in the year 9999 leaves no room to the others."""
    days = connection.execute(
        "SELECT count(*), min(started_us), max(started_us) FROM session "
        f"WHERE started_us <> 0 AND {condition} GROUP BY started_us / {_DAY_US} ORDER BY 2",
        values,
    )
    spans: list[tuple[int, int, int]] = []
    for count, first, last in days:
        if spans and first - spans[-1][2] < _APART_US:
            before, begin, _ = spans.pop()
            count, first = before + count, begin  # noqa: PLW2901  goes on
        spans.append((count, first, last))
    _, first, last = max(spans)
    return first, last


def _grounding(connection: sqlite3.Connection, condition: str, values: list[Any]) -> tuple[int, ...]:
    bins = [0] * _BINS
    for number, count in connection.execute(
        f"SELECT min(CAST(avg_grounding_score * {_BINS} AS INTEGER), {_BINS - 1}), count(*) FROM session "
        f"WHERE {condition} AND avg_grounding_score IS NOT NULL GROUP BY 1",
        values,
    ):
        bins[number] = count
    return tuple(bins)


def _latency(connection: sqlite3.Connection, condition: str, values: list[Any]) -> list[Percentiles]:
    # A sum of nothing is of stages that nobody timed.
    columns = ", ".join(f"NULLIF({stage}_latency_ms, 0)" for stage in (*STAGE_WORDS, "total"))
    rows = connection.execute(f"SELECT {columns} FROM session WHERE {condition}", values).fetchall()
    found: list[Percentiles] = []
    for stage, column in zip((*STAGE_WORDS, "all stages"), zip(*rows, strict=True), strict=False):
        ordered = sorted(value for value in column if value is not None)
        if ordered:
            taken = {name: round(percentile(ordered, share) * 1000) for name, share in PERCENTILES.items()}
            found.append(Percentiles(stage, len(ordered), **taken))
    return found


def _sources(connection: sqlite3.Connection, condition: str, values: list[Any]) -> list[SourceUse]:
    narrowed = "" if condition == "1" else f"AND mention.session IN (SELECT id FROM session WHERE {condition})"
    rows = connection.execute(
        "SELECT text, sum(times) AS chunks, count(*) FROM mention "
        f"WHERE kind = 'source' {narrowed} GROUP BY text ORDER BY chunks DESC, text LIMIT {_TOP}",
        values,
    )
    return [SourceUse(*row) for row in rows]


def _groups(connection: sqlite3.Connection, condition: str, values: list[Any], by: str) -> list[Group]:
    """Return the figures by what sessions are told apart by. One with several models or values counts with each."""
    more: list[Any] = []
    if by == "retriever":
        name, joined = "retriever_name", "session"
    elif by in NAMES:
        name, joined = "mention.text", f"{_MENTIONED} AND kind = '{by}'"
    else:
        # Of a tag, what stands behind its name.
        name, joined = "substr(mention.text, ?)", f"{_MENTIONED} AND kind = 'tag' AND instr(mention.text, ?) = 1"
        more = [len(by) + 2, f"{by}="]
    rows = connection.execute(
        f"SELECT {name}, {_OF_GROUP} FROM {joined} WHERE {condition} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_GROUPS}",
        (*more, *values),
    )
    return [Group(text or "", *figures) for text, *figures in rows]


def _failures(connection: sqlite3.Connection, condition: str, values: list[Any]) -> list[tuple[str, int]]:
    rows = connection.execute(
        f"SELECT text, count(*) FROM {_MENTIONED} AND kind = 'error' WHERE {condition} "
        f"GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {_TOP}",
        values,
    )
    return rows.fetchall()
