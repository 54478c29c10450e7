"""All amounts of the contexts, so that asking for one costs little however many there are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from spanforge.reference.grounding.quantities import Quantity, same_amount

_NEAREST: Final = 32
"""Amounts of about the same size that are compared with a claimed one."""

_LOOSEST: Final = 0.9
"""Ratio below which not even an approximate amount is the same; see ``quantities.same_amount``."""

_COMPARABLE: Final = {
    "number": ("number", "percent", "year"),
    "percent": ("percent", "number"),
    "year": ("year", "number"),
    "ordinal": ("ordinal", "day"),
    "day": ("day", "ordinal"),
}
"""Kind → kinds that may carry the same amount; any other kind only compares with itself."""


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
