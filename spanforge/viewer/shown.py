"""How values are written on pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = [
    "FILTERS",
    "amount",
    "change",
    "dollars",
    "duration",
    "figure",
    "moment",
    "percent",
    "score",
    "stars",
    "visible",
]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TEXT: Final = 160
_MS, _S, _MIN, _H = 1_000, 1_000_000, 60_000_000, 3_600_000_000
_THOUSAND: Final = 1_000
_TENFOLD, _HUNDRED = 10, 100
_DASH: Final = "\N{EN DASH}"
_MINUS: Final = "\N{MINUS SIGN}"


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


def dollars(value: float | None) -> str:
    """Write US dollars: whole ones where they are many, with cents, or as many digits as two that count take."""
    if value is None:
        return _DASH
    if round(value, 2) >= _THOUSAND:
        return f"${value:,.0f}"
    digits = 2 if not value or value >= 1 else min(9, 1 - math.floor(math.log10(value)))
    return f"${value:,.{max(2, digits)}f}"


def stars(rating: float | None) -> str:
    """Write a rating in [0, 1] on the scale of 1 to 5."""
    return _DASH if rating is None else f"{1 + 4 * rating:.1f}"


def percent(part: float, whole: float) -> str:
    """Write a share in percent; a dash where there is no whole."""
    if not whole:
        return _DASH
    share = 100 * part / whole
    # A few among many are not none, and all but a few are not all.
    if 0 < share < 0.1:  # noqa: PLR2004  the smallest that one decimal can say
        return "< 0.1 %"
    return f"{min(share, 99.9) if part < whole else share:.{0 if share == int(share) else 1}f} %"


def figure(value: float | None, unit: str) -> str:
    """Write a figure in its unit: `ms`, `share`, `score`, `tokens`, `of 5` or `USD`."""
    if value is None:
        return _DASH
    match unit:
        case "ms":
            return duration(value * _MS)
        case "share":
            return percent(value, 1)
        case "score":
            return score(value, 3)
        case "tokens":
            return amount(value)
        case _:
            return dollars(value) if unit == "USD" else f"{value:,.2f} {unit}"


def change(value: float | None, unit: str) -> str:
    """Write by how much a figure is more or less; a dash where nothing bounds it."""
    if value is None:
        return _DASH
    size = f"{100 * abs(value):.1f} points" if unit == "share" else figure(abs(value), unit)
    return f"{_MINUS if value < 0 else '+'}{size}"


FILTERS: Final[dict[str, Callable[..., str]]] = {
    "visible": visible,
    "duration": duration,
    "moment": moment,
    "amount": amount,
    "brief": brief,
    "dollars": dollars,
    "score": score,
    "stars": stars,
    "figure": figure,
    "change": change,
}
