"""What is asked of the list of sessions: the address of the page is the whole of it."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from spanforge import _clock
from spanforge._text import storable
from spanforge.namespaces.stages import STAGE_WORDS

__all__ = ["COLUMNS", "MARKS", "NAMES", "RANGES", "SORTS", "STATUSES", "Filter", "named"]

STATUSES: Final = ("ok", "partial", "error")

MARKS: Final = ("worth a look", "empty", "escalated", "rated low", "rated", "open")
"""What sessions can be picked out by: a human should look at them; nothing was found and nothing failed; a rule or a
person asked for a human; a rating under a half; any rating; no end that is stored."""

NAMES: Final = ("retriever", "model", "pipeline", "namespace", "actor")
"""What sessions are told apart by, beside their tags."""

RANGES: Final[Mapping[str, int]] = {"1h": 3_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000}
"""Names of the ranges of time that end now, with their lengths in seconds."""

SORTS: Final = ("started", "latency", "grounding", "tokens", "chunks", "errors", *STAGE_WORDS)
"""What the list can be sorted by; the name of a stage stands for the time that was spent in it."""

COLUMNS: Final = (
    "organisation", "retriever", "model", "tags", "latency", "grounding", "chunks", "tokens", "errors", "feedback",
    "escalated", "conversation",
)  # fmt: skip
"""What the list can show of a session beside its start, its id and its status, in that order."""
_SHOWN: Final = "organisation retriever latency grounding chunks tokens"

_DIGEST_LENGTH: Final = 64
_INT64: Final = 1 << 63
_SECONDS: Final = re.compile(r"T\d\d:\d\d:\d\d")
_LATEST_US: Final = 253_402_300_799_000_000  # 9999-12-31
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sessions, and in which order. Empty and None mean: no limit.

    Attributes:
        range: One of `RANGES`.
        since: First moment, as `YYYY-MM-DDThh:mm` in UTC; `until` is the last.
        status: One of `ok`, `partial`, `error`.
        retriever: Name of a retriever; `model`, `pipeline`, `namespace`, `actor` and `source` likewise.
        error: Class or code of an error.
        tag: A tag, as `name=value`.
        mark: One of `MARKS`.
        conversation: Id of a conversation.
        grounding_min: Lowest mean grounding score in [0, 1]; `grounding_max` the highest.
        latency_min: Shortest sum of stages in milliseconds; `latency_max` the longest.
        digest: Digest of a query, as hex.
        id: Beginning of a session id.
        org: An organisation, where more than one may be seen.
        without: Leaves out what it names, as `named` reads it.
        columns: Those of `COLUMNS` that are shown, with blanks between them.
        group: What the overview groups by: one of `NAMES`, or the name of a tag.
        against: What the overview is compared with, as `named` reads it; `before` is as long a time, right before.
        sort: One of `SORTS`; `order` is `desc` or `asc`.
        after: Where the page before this one ended.
    """

    range: str = ""
    since: str = ""
    until: str = ""
    status: str = ""
    retriever: str = ""
    model: str = ""
    pipeline: str = ""
    namespace: str = ""
    actor: str = ""
    source: str = ""
    error: str = ""
    tag: str = ""
    mark: str = ""
    conversation: str = ""
    grounding_min: float | None = None
    grounding_max: float | None = None
    latency_min: float | None = None
    latency_max: float | None = None
    digest: str = ""
    id: str = ""
    org: str = ""
    without: str = ""
    columns: str = _SHOWN
    group: str = "retriever"
    against: str = ""
    sort: str = "started"
    order: str = "desc"
    after: str = ""
    problems: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Filter:
        """Read a filter; what cannot be used is left out, and `problems` names the field and a remedy."""
        values: dict[str, Any] = {}
        problems: list[str] = []
        for one in fields(cls):
            text = query.get(one.name, "").strip()
            if one.name == "problems" or not text:
                continue
            check, remedy = _CHECKS.get(one.name, (storable, ""))
            value = check(text)
            if value is None:
                problems.append(f"{one.name.replace('_', ' ')}: {remedy}")
            else:
                values[one.name] = value
        return cls(**values, problems=tuple(problems))

    def query(self, **changes: Any) -> str:
        """Return the query string of this filter with some changes; a change starts at the first page again."""
        return urlencode(replace(self, **{"after": "", **changes}).said)

    @property
    def said(self) -> list[tuple[str, str]]:
        """What an address says of this filter: the fields that are not as they are without."""
        found = [(one.name, getattr(self, one.name)) for one in fields(self) if one.name != "problems"]
        unsaid = Filter()
        return [
            (name, f"{value:g}" if isinstance(value, float) else value)
            for name, value in found
            if value is not None and value != getattr(unsaid, name)
        ]

    @property
    def narrowed(self) -> int:
        """How many limits are set."""
        kept = {"columns", "group", "against", "sort", "order", "after", "problems"}
        return sum(getattr(self, one.name) not in {"", None} for one in fields(self) if one.name not in kept)

    def toggled(self, column: str) -> str:
        """Return the query string of this filter with a column more, or without it where it is shown."""
        shown = set(self.columns.split()) ^ {column}
        return self.query(columns=" ".join(name for name in COLUMNS if name in shown) or "none")

    @property
    def moments(self) -> tuple[int | None, int | None]:
        """The first and the last moment, in microseconds since the epoch."""
        since, until = _microseconds(self.since), _microseconds(self.until)
        if self.range:
            since = max(since or 0, _clock.wall_ns() // 1000 - RANGES[self.range] * 1_000_000)
        # A minute is named by its start, and meant as a whole; so is a second.
        whole = 999_999 if _SECONDS.search(self.until) else 59_999_999
        return since, None if until is None else until + whole

    @property
    def cursor(self) -> tuple[Any, str, str] | None:
        """Where the page before ended: the value sorted by, the session id, and the organisation."""
        return decoded(self.after) if self.after else None


def decoded(cursor: str) -> tuple[Any, str, str] | None:
    """Read a cursor; None where it is not one."""
    try:
        value = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
    except (ValueError, RecursionError):
        return None
    match value:
        case [float() as number, str() as session_id, str() as org] if math.isfinite(number):
            return number, storable(session_id), storable(org)
        case [int() as number, str() as session_id, str() as org] if abs(number) < _INT64:
            return number, storable(session_id), storable(org)
        case _:
            return None


def encoded(value: float, session_id: str, org: str) -> str:
    """Write a cursor; for an address, so that it can be kept and shared."""
    return base64.urlsafe_b64encode(json.dumps([value, session_id, org]).encode("ascii")).decode("ascii")


def named(text: str) -> dict[str, str]:
    """Read what names a part of the sessions; returns the fields of the filter for it, none where it names nothing.

    Args:
        text: One of `NAMES` or the name of a tag, with `=` and a value; or a period, `SINCE..UNTIL`, of which one may
            be missing, and which ends before the moment that it names.
    """
    name, equals, value = text.partition("=")
    if equals:
        return {} if not (name and value) else {name: value} if name in NAMES else {"tag": text}
    since, dots, until = text.partition("..")
    if not dots or not (since or until) or any(one and _microseconds(one) is None for one in (since, until)):
        return {}
    return {"since": since, "until": _second_before(until)}


def _second_before(until: str) -> str:
    """Return the last second before a moment: a filter means it whole."""
    if not until:
        return ""
    try:
        return (datetime.fromisoformat(until) - timedelta(seconds=1)).isoformat(timespec="seconds")
    except OverflowError:
        return until


def _microseconds(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    us = int((moment - _EPOCH).total_seconds()) * 1_000_000
    return min(max(us, 0), _LATEST_US)


def _readable(text: str) -> str | None:
    return None if _microseconds(text) is None else text


def _number(low: float, high: float) -> Callable[[str], float | None]:
    def check(text: str) -> float | None:
        try:
            value = float(text)
        except ValueError:
            return None
        return value if math.isfinite(value) and low <= value <= high else None

    return check


def _one_of(names: tuple[str, ...]) -> Callable[[str], str | None]:
    return lambda text: text if text in names else None


def _columns(text: str) -> str | None:
    return text if text == "none" or set(text.split()) <= set(COLUMNS) else None


def _hex(text: str) -> str | None:
    bare = text.lower().rpartition(":")[2]
    return bare if len(bare) == _DIGEST_LENGTH and set(bare) <= set("0123456789abcdef") else None


_SCORE = (_number(0, 1), "give a number from 0 to 1")
_TIME = (_number(0, 1e12), "give milliseconds, from 0 up")


def _part(text: str) -> str | None:
    return text if named(text) else None


_PART = (
    _part,
    f"name a period such as 2026-11-01..2026-11-15, or {', '.join(NAMES)} or a tag, with = and a value",
)
_MOMENT = (_readable, "give a date and time, such as 2026-01-31T09:00")

_CHECKS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "range": (_one_of(tuple(RANGES)), f"use one of {', '.join(RANGES)}"),
    "since": _MOMENT,
    "until": _MOMENT,
    "status": (_one_of(STATUSES), f"use one of {', '.join(STATUSES)}"),
    "mark": (_one_of(MARKS), f"use one of {', '.join(MARKS)}"),
    "grounding_min": _SCORE,
    "grounding_max": _SCORE,
    "latency_min": _TIME,
    "latency_max": _TIME,
    "columns": (_columns, f"use some of {', '.join(COLUMNS)}, or none"),
    "without": _PART,
    "against": (lambda text: text if text == "before" else _part(text), f"{_PART[1]}; or before"),
    "digest": (_hex, "give the 64 hex digits of a digest"),
    "sort": (_one_of(SORTS), f"use one of {', '.join(SORTS)}"),
    "order": (_one_of(("desc", "asc")), "use desc or asc"),
    "after": (lambda text: None if decoded(text) is None else text, "start at the first page again"),
}
