"""Defaults that read as the numbers they always were, and are known from numbers that a caller said.

`prompt_tokens=0` says that there were none; a call without it says nothing, and nothing is then recorded.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COUNT", "TIME", "TOP_K"]


class _UnsaidCount(int):
    """A whole number that nobody said."""


class _UnsaidTime(float):
    """A time that nobody said."""


COUNT: Final[int] = _UnsaidCount(0)
TIME: Final[float] = _UnsaidTime(0.0)
TOP_K: Final[int] = _UnsaidCount(5)
