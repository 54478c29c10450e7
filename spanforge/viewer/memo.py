"""Figures that take long to make are kept for a while that their making decides."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from spanforge import _clock

__all__ = ["Memo"]

T = TypeVar("T")

_MOST: Final = 64
_TIMES: Final = 10


class Memo(Generic[T]):
    """Keeps results while nothing has changed, and otherwise for ten times as long as they took to make.

    Pages ask again every few seconds while a store grows; a large one would be summed up without pause.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[int, float, float, T]] = OrderedDict()

    def get(self, key: Hashable, stamp: int, make: Callable[[], T]) -> T:
        """Return a kept result, or a new one.

        Args:
            key: What is asked.
            stamp: Changes with what the answer depends on.
            make: Makes it anew.
        """
        now = _clock.monotonic()
        kept = self._kept.get(key)
        if kept is not None and (kept[0] == stamp or now < kept[1] + _TIMES * kept[2]):
            return kept[3]
        made = make()
        done = _clock.monotonic()
        self._kept[key] = stamp, done, done - now, made
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return made
