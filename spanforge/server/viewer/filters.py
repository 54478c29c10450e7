"""What is asked of the list of sessions: the address of the page is the whole of it."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from spanforge import _clock
from spanforge.server.viewer.index.figures import STATUSES
from spanforge.server.viewer.index.writer import storable

__all__ = ["RANGES", "SORTS", "Filter"]

RANGES: Final[Mapping[str, int]] = {"1h": 3_600, "24h": 86_400, "7d": 604_800, "30d": 2_592_000}
"""Names of the ranges of time that end now, with their lengths in seconds."""

SORTS: Final = ("started", "latency", "grounding", "tokens", "chunks", "errors")

_DIGEST_LENGTH: Final = 64
_INT64: Final = 1 << 63
_LATEST_US: Final = 253_402_300_799_000_000  # 9999-12-31
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sessions, and in which order. Empty and None mean: no limit.

    Attributes:
        range: One of `RANGES`.
        since: First moment, as `YYYY-MM-DDThh:mm` in UTC; `until` is the last.
        status: One of `ok`, `partial`, `error`.
        retriever: Name of a retriever; `model` is one of a model.
        grounding_min: Lowest mean grounding score in [0, 1]; `grounding_max` the highest.
        latency_min: Shortest sum of stages in milliseconds; `latency_max` the longest.
        digest: Digest of a query, as hex.
        id: Beginning of a session id.
        org: An organisation, where more than one may be seen.
        sort: One of `SORTS`; `order` is `desc` or `asc`.
        after: Where the page before this one ended.
    """

    range: str = ""
    since: str = ""
    until: str = ""
    status: str = ""
    retriever: str = ""
    model: str = ""
    grounding_min: float | None = None
    grounding_max: float | None = None
    latency_min: float | None = None
    latency_max: float | None = None
    digest: str = ""
    id: str = ""
    org: str = ""
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
        changed = replace(self, **{"after": "", **changes})
        said: list[tuple[str, str]] = []
        for one in fields(changed):
            value = getattr(changed, one.name)
            if one.name != "problems" and value != one.default and value is not None:
                said.append((one.name, f"{value:g}" if isinstance(value, float) else value))
        return urlencode(said)

    @property
    def narrowed(self) -> int:
        """How many limits are set."""
        kept = {"sort", "order", "after", "problems"}
        return sum(getattr(self, one.name) not in {"", None} for one in fields(self) if one.name not in kept)

    @property
    def moments(self) -> tuple[int | None, int | None]:
        """The first and the last moment, in microseconds since the epoch."""
        since, until = _minute(self.since), _minute(self.until)
        if self.range:
            since = max(since or 0, _clock.wall_ns() // 1000 - RANGES[self.range] * 1_000_000)
        # A minute is named by its start, and meant as a whole.
        return since, None if until is None else until + 59_999_999

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


def _minute(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    us = int((moment - _EPOCH).total_seconds()) * 1_000_000
    return min(max(us, 0), _LATEST_US)


def _readable(text: str) -> str | None:
    return None if _minute(text) is None else text


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


def _hex(text: str) -> str | None:
    bare = text.lower().rpartition(":")[2]
    return bare if len(bare) == _DIGEST_LENGTH and set(bare) <= set("0123456789abcdef") else None


_SCORE = (_number(0, 1), "give a number from 0 to 1")
_TIME = (_number(0, 1e12), "give milliseconds, from 0 up")
_MOMENT = (_readable, "give a date and time, such as 2026-01-31T09:00")

_CHECKS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "range": (_one_of(tuple(RANGES)), f"use one of {', '.join(RANGES)}"),
    "since": _MOMENT,
    "until": _MOMENT,
    "status": (_one_of(STATUSES), f"use one of {', '.join(STATUSES)}"),
    "grounding_min": _SCORE,
    "grounding_max": _SCORE,
    "latency_min": _TIME,
    "latency_max": _TIME,
    "digest": (_hex, "give the 64 hex digits of a digest"),
    "sort": (_one_of(SORTS), f"use one of {', '.join(SORTS)}"),
    "order": (_one_of(("desc", "asc")), "use desc or asc"),
    "after": (lambda text: None if decoded(text) is None else text, "start at the first page again"),
}
