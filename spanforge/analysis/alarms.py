"""When a human is asked for: rules over sessions as they end, and over ratings as they come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Self, TypeAlias, cast, get_args

from spanforge.analysis.figures import FIGURES
from spanforge.analysis.quiet import QuietHours
from spanforge.analysis.tables import number, refuse_unknown
from spanforge.exceptions import ConfigError
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.sdk import StoredSession

__all__ = ["ALARMS", "BY_RATING", "Alarm", "Trigger"]

Comparison: TypeAlias = Literal["below", "above", "at_least", "at_most"]
Trigger: TypeAlias = Literal["grounding", "rating", "no_documents", "latency", "custom"]

BY_RATING: Final = frozenset({"helpful_rate", "answer_quality"})
"""Figures that a rating gives samples of, whenever it comes; the others have theirs when a session ends."""
_NUMBERS: Final = ("Amount", "Count", "Milliseconds", "Score", "Sum")
_KINDS: Final = {field.name: str(field.type).partition(" ")[0] for field in fields(RAGSessionPayload)}
_TOLD: Final = frozenset(name for name, kind in _KINDS.items() if kind in _NUMBERS)
_OF_FIVE: Final = ("answer_quality", "context_relevance")
_TRIGGERS: Final[Mapping[str, Trigger]] = {
    "grounding": "grounding",
    "answer_quality": "rating",
    "helpful_rate": "rating",
    "documents_retrieved": "no_documents",
    "latency_s": "latency",
}
_TIME: Final = re.compile(r"([1-9]\d{0,5})([smhd])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_COMPARISONS: Final[tuple[Comparison, ...]] = get_args(Comparison)
_KEYS: Final = ("name", "field", *_COMPARISONS, "level", "window", "share", "smallest_sample", "quiet")
_MOST: Final = 100_000
_HIGHEST: Final = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A rule.

    It fires for a sample that crosses the threshold; with a `share`, where so many of those of the last `window_s` do.
    Once it has fired, what matches within `window_s` is held back, and counted; so is what matches in quiet hours.

    Attributes:
        name: What it is called in events and messages.
        field: A figure of `spanforge.analysis.figures.FIGURES`, or a number of a session's summary.
        comparison: How a sample stands to the threshold where it matches.
        threshold: In the unit of the field; what is true or false counts as 1 or 0.
        level: 1 tuning, 2 infrastructure, 3 strategy.
        window_s: Seconds.
        share: Share of the samples, above 0 and up to 1; None where one is enough.
        smallest_sample: With fewer samples in the window a share is none.
        quiet: When it never fires.
    """

    name: str
    field: str
    comparison: Comparison
    threshold: float
    level: int = 1
    window_s: float = 600.0
    share: float | None = None
    smallest_sample: int = 20
    quiet: QuietHours | None = None

    @property
    def trigger(self) -> Trigger:
        """What kind of cause it has, as escalations say it."""
        return _TRIGGERS.get(self.field, "custom")

    def matches(self, value: float) -> bool:
        """Tell whether a sample crosses the threshold; what floating point adds beyond nine places decides nothing."""
        value, threshold = round(value, 9), round(self.threshold, 9)
        return {
            "below": value < threshold,
            "above": value > threshold,
            "at_least": value >= threshold,
            "at_most": value <= threshold,
        }[self.comparison]

    def samples(self, session: StoredSession) -> list[float]:
        """Return what a session gives of the field."""
        if self.field in FIGURES:
            return [float(one) for one in FIGURES[self.field][0](session) if one is not None]
        value = getattr(session.summary, self.field)
        return [] if value is None else [float(value)]

    @classmethod
    def of(cls, given: object, place: str) -> Self:
        """Return the rule that a table of a TOML document describes.

        Args:
            given: The table.
            place: What to call it in a refusal.

        Raises:
            ConfigError: It cannot be used; the message names the field and what would do.
        """
        if not isinstance(given, dict):
            raise ConfigError(f"{place}: make it a table, [[watch]]")
        table = cast("dict[str, Any]", given)
        refuse_unknown(table, _KEYS, place)
        field = table.get("field")
        if field not in FIGURES and field not in _TOLD:
            raise ConfigError(f"{place}.field: use one of {', '.join([*FIGURES, *sorted(_TOLD)])}")
        named: list[Comparison] = [name for name in _COMPARISONS if name in table]
        if len(named) != 1:
            raise ConfigError(f"{place}: give one of {', '.join(_COMPARISONS)}, with a number")
        name = table.get("name", field)
        if not isinstance(name, str) or not 0 < len(name) <= 128:  # noqa: PLR2004  as long as names are
            raise ConfigError(f"{place}.name: give a text of up to 128 characters")
        share = table.get("share")
        if share is None and "smallest_sample" in table:
            raise ConfigError(f"{place}.smallest_sample: is that of a share; give one, or leave it out")
        alarm = cls(
            name=name,
            field=str(field),
            comparison=named[0],
            threshold=number(table[named[0]], -_HIGHEST, _HIGHEST, f"{place}.{named[0]}"),
            level=int(number(table.get("level", 1), 1, 3, f"{place}.level", whole=True)),
            window_s=_window(table.get("window", "10m"), f"{place}.window"),
            share=None if share is None else number(share, 1e-9, 1.0, f"{place}.share"),
            quiet=QuietHours.of(table["quiet"], f"{place}.quiet") if "quiet" in table else None,
            smallest_sample=int(
                number(table.get("smallest_sample", 20), 1, _MOST, f"{place}.smallest_sample", whole=True)
            ),
        )
        _refuse_idle(alarm, f"{place}.{named[0]}")
        return alarm


def _refuse_idle(alarm: Alarm, place: str) -> None:
    low, high = _range(alarm.field)
    if alarm.matches(low) is alarm.matches(high):
        which = "every" if alarm.matches(low) else "no"
        there = f"to {high:g}" if high < _HIGHEST else "up"
        raise ConfigError(f"{place}: {which} sample would match; they go from {low:g} {there}")


def _range(field: str) -> tuple[float, float]:
    """Return the lowest and the highest sample that there can be of a field."""
    if field in _OF_FIVE:
        return 1.0, 5.0
    has_top = field in FIGURES.keys() - {"latency_s", "cost_usd"} or _KINDS.get(field) == "Score"
    return 0.0, 1.0 if has_top else _HIGHEST


def _window(given: object, field: str) -> float:
    found = _TIME.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise ConfigError(f'{field}: give a time with its unit, as in "90s", "10m", "12h" or "1d"')
    return float(int(found[1]) * _SECONDS[found[2]])


ALARMS: Final = (
    Alarm(name="low-grounding", field="grounding", comparison="below", threshold=0.5),
    Alarm(name="low-rating", field="answer_quality", comparison="at_most", threshold=2.0),
    Alarm(name="nothing-found", field="documents_retrieved", comparison="below", threshold=1.0),
    Alarm(name="slow", field="latency_s", comparison="above", threshold=5.0, level=2),
)
"""The triggers of P-KNOW-RAG."""
