"""One name for each kind of error, of few values."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["error_type"]

_CODE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")


def error_type(status: str, recorded: str) -> str:
    """Return the name of a failed stage's error.

    Args:
        status: Of the stage.
        recorded: What was kept of the error: a class, a code or a digest.

    Returns:
        `timeout` for time-outs; the class or code that was recorded; `_OTHER` where only a digest was kept.
    """
    if status == "timeout":
        return "timeout"
    return recorded if _CODE.fullmatch(recorded) else "_OTHER"
