"""Two sets of stored sessions side by side, on the overview and as one page too (extra `analysis`)."""

# ruff: noqa: S608  the query is put together of our own names alone; values are always bound
from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from spanforge import _clock
from spanforge.analysis.comparing import FigureChange, Side, changes
from spanforge.analysis.intervals import table
from spanforge.analysis.prices import Pricing
from spanforge.namespaces.stages import STAGE_WORDS
from spanforge.viewer.filters import Filter, named
from spanforge.viewer.queries import EMPTY, where
from spanforge.viewer.report import one_page
from spanforge.viewer.shown import moment
from spanforge.viewer.store import Progress, ViewedStore
from spanforge.viewer.stored_events import lay_prices

__all__ = ["Baseline", "Changes", "StoredChanges", "compare", "compare_within"]

_Key: TypeAlias = tuple[str, str]
_FEWEST: Final = 2
_BATCH: Final = 10_000
_TABLED: Final[Mapping[str, str]] = {
    # A sum of nothing is of stages that nobody timed, or that were not there.
    **{stage: f"NULLIF({stage}_latency_ms, 0)" for stage in STAGE_WORDS},
    "all stages": "NULLIF(total_latency_ms, 0)",
    "error": "status = 'error'",
    "grounding": "avg_grounding_score",
    "empty": f"CASE WHEN retrieval_count > 0 THEN {EMPTY} END",
    "reordered": "reordered",
    "cited": "CASE WHEN answers > 0 THEN cited END",
    "tokens": "NULLIF(total_input_tokens + total_output_tokens, 0)",
    "cost": "total_cost_usd",
    "helpful": "CASE WHEN judged > 0 THEN helpful END",
    "rating": "1 + 4 * rating",
    "escalated": "escalations > 0",
}
"""Of each measure the sum that a row of the table of sessions has, NULL where it has no sample."""
_SEVERAL: Final[Mapping[str, str]] = {"cited": "answers", "helpful": "judged"}
"""Of how many samples that is, where it is not of one."""
_COLUMNS: Final = {name: place for place, name in enumerate((*_TABLED, *_SEVERAL.values()))}


@dataclass(frozen=True, slots=True)
class Baseline:
    """What sessions are compared with.

    Attributes:
        text: How it was asked for.
        store: Where its sessions are stored; None where they are in the same store.
        wanted: Which of them.
        is_part: It is a part of the other set, which then is what is left without it.
    """

    text: str
    store: Path | None
    wanted: Filter
    is_part: bool = False

    @classmethod
    def of(cls, text: str, wanted: Filter) -> Baseline:
        """Return what differs from a filter in one respect: in what `named` reads, or by `before`.

        Raises:
            ValueError: Sessions cannot be compared with that; the message says why.
        """
        changed = _before(wanted) if text == "before" else named(text)
        if wanted.tag and wanted.tag.partition("=")[0] != changed.get("tag", wanted.tag).partition("=")[0]:
            raise ValueError("the filter names another tag, and one can be asked for at a time")
        if "since" in changed:
            changed["range"] = ""
        free = not any(getattr(wanted, name) for name in changed)
        baseline = replace(wanted, against="", **changed)
        begin, end = baseline.moments
        if "since" in changed and begin is not None and end is not None and begin > end:
            raise ValueError("the period ends before it begins, or at once; name the earlier time first")
        return cls(text, None, baseline, is_part=free)


@dataclass(frozen=True, slots=True)
class Changes:
    """Two sets of sessions, and every figure of both.

    Attributes:
        wanted: Which sessions are compared with the baseline.
        baseline: What they are compared with.
        sessions: How many they are; `baseline_sessions` likewise.
        on_both_sides: How many belong to both sets, and are left out of them.
        figures: The figures.
    """

    wanted: Filter
    baseline: Baseline
    sessions: int
    baseline_sessions: int
    on_both_sides: int
    figures: list[FigureChange]

    @property
    def these(self) -> Filter:
        """Which sessions those are that are compared: the ones of the filter that do not belong to the baseline."""
        before = self.baseline.text == "before"
        return self.wanted if before else replace(self.wanted, without=self.baseline.text)

    @property
    def problem(self) -> str:
        """Why they cannot be compared; empty where they can."""
        if min(self.sessions, self.baseline_sessions) >= _FEWEST:
            return ""
        found = (
            f"{self.baseline_sessions:,} sessions in the baseline and {self.sessions:,} beside it, where each needs "
            "two or more"
        )
        if not self.on_both_sides:
            return found
        return (
            f"{found}; {self.on_both_sides:,} are on both sides and count on neither: name a baseline of other sessions"
        )

    @property
    def chance(self) -> str:
        """What to bear in mind."""
        return "Each interval is of 95 %: of twenty figures that are alike, about one seems to differ."


@dataclass(frozen=True, slots=True)
class StoredChanges(Changes):
    """The same of what is stored in files.

    Attributes:
        store: What the store is called.
        began: When the first and the last session of the store began that pass its filters, in microseconds since the
            epoch; 0 where there is none.
        progress: What of the store could not be read; `baseline_damaged` is what of that of the baseline was damaged.
    """

    store: str
    began: tuple[int, int]
    progress: Progress
    baseline_damaged: dict[str, int]

    def as_data(self) -> dict[str, Any]:
        """Return the comparison as JSON values, with what was damaged."""
        return {
            "damaged": self.progress.damaged,
            "baseline_damaged": self.baseline_damaged,
            "complete": self.progress.complete,
            "baseline": self.baseline.text,
            "sessions": self.sessions,
            "baseline_sessions": self.baseline_sessions,
            "on_both_sides": self.on_both_sides,
            "figures": [{**asdict(one), "difference": one.difference, "verdict": one.verdict} for one in self.figures],
        }

    def html(self) -> str:
        """Return the comparison as one page that needs no network and no server."""
        return one_page("changes.html", self.store, self.wanted, self.progress, compared=self)


def compare(store: Path, wanted: Filter, baseline: Baseline, pricing: Pricing | None = None) -> StoredChanges:
    """Read a store and that of the baseline whole, and return what changed.

    Args:
        store: A database of the sqlite sink, a jsonl file, a folder or a pattern.
        wanted: Which sessions.
        baseline: What they are compared with.
        pricing: Prices for generations that do not say their cost.
    """
    with ExitStack() as opened:
        stores = [opened.enter_context(closing(ViewedStore(path))) for path in (store, baseline.store) if path]
        for viewed in stores:
            viewed.catch_up()
        connections = [opened.enter_context(viewed.reading()) for viewed in stores]
        if pricing is not None:
            for connection in connections:
                lay_prices(connection, pricing)
        mine, other = connections[0], connections[-1]
        found = (
            compare_within(mine, None, wanted, baseline)
            if baseline.store is None
            else _compare_stores(mine, other, wanted, baseline)
        )
        return StoredChanges(
            **{field.name: getattr(found, field.name) for field in fields(found)},
            store=stores[0].name,
            began=_began(mine, wanted),
            progress=stores[0].progress(),
            baseline_damaged=stores[-1].progress().damaged,
        )


def compare_within(connection: sqlite3.Connection, org: str | None, wanted: Filter, baseline: Baseline) -> Changes:
    """Return what changed between two sets of sessions of one store.

    Args:
        connection: To it.
        org: The one organisation that may be seen; None for all.
        wanted: Which sessions.
        baseline: What they are compared with.
    """
    (mine, values), (other, more) = where(org, wanted), where(org, baseline.wanted)
    # Who belongs to both is on neither side, unless the one is a part of the other.
    shared, few = ("0", []) if baseline.is_part else (mine, values)
    new = _Tabled(connection, f"({mine}) AND NOT ({other})", [*values, *more])
    old = _Tabled(connection, f"({other}) AND NOT ({shared})", [*more, *few])
    query = f"SELECT count(*) FROM session WHERE ({other}) AND ({shared})"
    [both] = connection.execute(query, [*more, *few]).fetchone()
    return Changes(wanted, baseline, new.sessions, old.sessions, both, changes(old, new))


def _compare_stores(mine: sqlite3.Connection, other: sqlite3.Connection, wanted: Filter, baseline: Baseline) -> Changes:
    both = _keys(mine, wanted) & _keys(other, baseline.wanted)
    sides: list[_Tabled] = []
    for connection, (condition, values) in ((mine, where(None, wanted)), (other, where(None, baseline.wanted))):
        connection.execute("CREATE TEMP TABLE shared (org_id, session_id, PRIMARY KEY (org_id, session_id))")
        connection.executemany("INSERT INTO shared VALUES (?, ?)", both)
        apart = f"({condition}) AND (org_id, session_id) NOT IN (SELECT org_id, session_id FROM shared)"
        sides.append(_Tabled(connection, apart, values))
    new, old = sides
    return Changes(wanted, baseline, new.sessions, old.sessions, len(both), changes(old, new))


class _Tabled:
    """Samples out of the table of sessions.

    Attributes:
        sessions: How many there are.
    """

    def __init__(self, connection: sqlite3.Connection, condition: str, values: list[Any]) -> None:
        columns = ", ".join((*_TABLED.values(), *_SEVERAL.values()))
        rows = connection.execute(f"SELECT {columns} FROM session WHERE {condition}", values)
        self._rows = table(iter(lambda: rows.fetchmany(_BATCH), []), len(_COLUMNS))
        self.sessions = len(self._rows)

    def of(self, measure: str) -> Side:
        """Return sums and counts of a measure as columns."""
        sums = self._rows[:, _COLUMNS[measure]]
        counts = self._rows[:, _COLUMNS[_SEVERAL[measure]]] if measure in _SEVERAL else sums**0
        known = sums == sums  # noqa: PLR0124  what is not a number is not even itself
        return sums[known], counts[known]


def _before(wanted: Filter) -> dict[str, str]:
    """Return as long a time as that of a filter, right before it."""
    since, until = wanted.moments
    if since is None:
        raise ValueError("choose a range of time, to have one before it")
    length = (_clock.wall_ns() // 1000 if until is None else until) - since
    first, last = (moment(max(0, us)).replace(" ", "T") for us in (since - length, since - 1_000_000))
    return {"since": first, "until": last}


def _began(connection: sqlite3.Connection, wanted: Filter) -> tuple[int, int]:
    condition, values = where(None, wanted)
    first, last = connection.execute(
        f"SELECT min(NULLIF(started_us, 0)), max(started_us) FROM session WHERE {condition}", values
    ).fetchone()
    return first or 0, last or 0


def _keys(connection: sqlite3.Connection, wanted: Filter) -> set[_Key]:
    condition, values = where(None, wanted)
    return set(connection.execute(f"SELECT org_id, session_id FROM session WHERE {condition}", values))
