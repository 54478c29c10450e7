"""How values are written on pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["FILTERS", "amount", "duration", "moment", "percent", "score", "visible"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TEXT: Final = 160
_MS, _S, _MIN, _H = 1_000, 1_000_000, 60_000_000, 3_600_000_000
_THOUSAND: Final = 1_000
_TENFOLD, _HUNDRED = 10, 100
_DASH: Final = "\N{EN DASH}"


def visible(value: object, most: int = _MOST_TEXT) -> str:
    """Return text that shows all it is made of: controls and marks of direction as escapes, cut at `most`."""
    text = str(value)
    cut, rest = text[:most], len(text) - most
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return f"{shown}… ({rest:,} more)" if rest > 0 else shown


def duration(us: float | None) -> str:
    """Write microseconds, in the unit that leaves three digits or so."""
    if us is None:
        return _DASH
    if us < _MS:
        return f"{us:.0f} µs"
    if us < _S:
        return f"{us / _MS:.{1 if us < 100 * _MS else 0}f} ms"
    if us < _MIN:
        return f"{us / _S:.{2 if us < _TENFOLD * _S else 1}f} s"
    if us < _H:
        return f"{us / _MIN:.1f} min"
    return f"{us / _H:,.1f} h"


def moment(us: int, precision: str = "seconds") -> str:
    """Write a moment in UTC, `YYYY-MM-DD hh:mm:ss`; precision is that of `datetime.isoformat`, or `days`."""
    try:
        at = _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return "beyond 9999"
    return at.date().isoformat() if precision == "days" else at.replace(tzinfo=None).isoformat(" ", precision)


def amount(value: float | None) -> str:
    """Write a count with its thousands apart."""
    return _DASH if value is None else f"{value:,.0f}"


def brief(value: float) -> str:
    """Write a large count in three digits or so."""
    for unit in ("", "k", "M", "G", "T"):
        if value < _THOUSAND:
            return f"{value:.{1 if unit and value < _HUNDRED else 0}f}{unit}".replace(".0", "")
        value /= _THOUSAND
    return f"{value:,.0f}P"


def score(value: float | None, digits: int = 2) -> str:
    """Write a measure in [0, 1]."""
    return _DASH if value is None else f"{value:.{digits}f}"


def percent(part: float, whole: float) -> str:
    """Write a share in percent; a dash where there is no whole."""
    if not whole:
        return _DASH
    share = 100 * part / whole
    # A few among many are not none, and all but a few are not all.
    if 0 < share < 0.1:  # noqa: PLR2004  the smallest that one decimal can say
        return "< 0.1 %"
    return f"{min(share, 99.9) if part < whole else share:.{0 if share == int(share) else 1}f} %"


FILTERS: Final = {
    "visible": visible,
    "duration": duration,
    "moment": moment,
    "amount": amount,
    "brief": brief,
    "score": score,
}
