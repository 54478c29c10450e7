"""When two amounts are the same; and all those of the contexts, so that asking for one costs little."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

DATE_KINDS: Final = frozenset({"year", "month", "day", "weekday", "clock"})
DISCRETE_KINDS: Final = DATE_KINDS | {"ordinal"}
"""Kinds that are equal or not; nothing lies between two of their values."""

_EXACT: Final = 1e-9
_ROUNDED: Final = 0.01
_APPROXIMATE: Final = 0.1
_SMALL: Final = 2
_NEAREST: Final = 32
"""Amounts of about the same size that are compared with a claimed one."""

_LOOSEST: Final = 0.9
"""Ratio below which not even an approximate amount is the same; see ``same_amount``."""

_COMPARABLE: Final = {
    "number": ("number", "percent", "year"),
    "percent": ("percent", "number"),
    "year": ("year", "number"),
    "ordinal": ("ordinal", "day"),
    "day": ("day", "ordinal"),
}
"""Kind → kinds that may carry the same amount; any other kind only compares with itself."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One amount, date part or time of a sentence.

    Attributes:
        kind: ``number``, ``percent``, ``ordinal``, ``year``, ``month``, ``day``, ``weekday``, ``clock`` (minutes after
            midnight), or a dimension of ``lexicon.UNITS``.
        value: The value in the kind's base unit.
        written: The number as written, before units and factors.
        nouns: Stems of the words right after it ("patient" in "12 patients"), or of the one before it ("season 7").
        approximate: Whether the text itself loosens it ("about").
        spelled: Whether the number is written in words.
        per: Stem of what it is given for ("month" in "$600/month"), or the empty string.
    """

    kind: str
    value: float
    written: float
    nouns: tuple[str, ...] = ()
    approximate: bool = False
    spelled: bool = False
    per: str = ""

    @property
    def is_small_word(self) -> bool:
        """Whether it is a plain "two", "first" or "half", which texts say without counting anything."""
        return self.spelled and self.kind in {"number", "ordinal"} and self.written <= _SMALL


def same_amount(claimed: Quantity, found: Quantity) -> bool:
    """Tell whether evidence carries the claimed amount, rounding and stated approximation allowed.

    Both are of one kind, or a share and its percentage, and equal within the claim's own precision.
    """
    kinds = {claimed.kind, found.kind}
    if kinds == {"percent", "number"}:
        return math.isclose(_as_percent(claimed), _as_percent(found))
    if kinds in ({"year", "number"}, {"ordinal", "day"}):
        return claimed.value == found.value
    if len(kinds) > 1 or (claimed.per and found.per and claimed.per != found.per):
        return False
    difference = abs(claimed.value - found.value) / max(abs(claimed.value), abs(found.value), _EXACT)
    if difference <= _EXACT or claimed.kind in DISCRETE_KINDS:
        return difference <= _EXACT
    if claimed.approximate or found.approximate:
        return difference <= _APPROXIMATE
    return difference <= _ROUNDED and claimed.value == _rounded_like(found.value, claimed.value)


def _as_percent(amount: Quantity) -> float:
    """Return a share as percent; a plain number from one is no share, which equals nothing."""
    if amount.kind == "percent":
        return amount.value
    return amount.value * 100 if amount.value < 1 else math.nan


def _rounded_like(value: float, model: float) -> float:
    """Return ``value`` rounded to the significant digits that ``model`` is written with."""
    if not value or not model or not math.isfinite(value):
        return value
    digits = len(f"{abs(model):.12g}".replace(".", "").strip("0").split("e")[0]) or 1
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


class AmountIndex:
    """The distinct amounts of several texts."""

    def __init__(self, amounts: Iterable[Quantity]) -> None:
        self._kinds_written: dict[float, set[str]] = {}
        self._by_kind: dict[str, list[Quantity]] = {}
        for amount in dict.fromkeys(amounts):
            self._kinds_written.setdefault(amount.written, set()).add(amount.kind)
            self._by_kind.setdefault(amount.kind, []).append(amount)
        for found in self._by_kind.values():
            found.sort(key=lambda amount: amount.value)

    def has(self, claimed: Quantity) -> bool:
        """Tell whether the texts have a claimed amount, its unit perhaps left out on one side ("at 7" for "7 pm")."""
        kinds = self._kinds_written.get(claimed.written, frozenset[str]())
        if kinds and (claimed.kind == "number" or "number" in kinds):
            return True
        return any(
            same_amount(claimed, found)
            for kind in _COMPARABLE.get(claimed.kind, (claimed.kind,))
            for value in (claimed.value, claimed.value / 100, claimed.value * 100)
            for found in self._near(kind, value)
        )

    def _near(self, kind: str, value: float) -> list[Quantity]:
        found = self._by_kind.get(kind, [])
        start = bisect_left(found, min(value * _LOOSEST, value / _LOOSEST), key=lambda amount: amount.value)
        middle = bisect_left(found, value, key=lambda amount: amount.value)
        return found[max(start, middle - _NEAREST) : middle + _NEAREST]
