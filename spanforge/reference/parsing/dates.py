"""Dates as files write them, read into one form."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_PDF: Final = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?)?")


def date_of(text: str) -> datetime | None:
    """Return the date that a text says, in ISO 8601, as in a PDF (D:2026...) or as in a message; None for any other.

    A time without a zone is taken for UTC.
    """
    text = text.strip()
    if match := _PDF.match(text):
        year, month, day, hour, minute, second, sign, east, more = match.groups()
        zone = f"{sign}{east}:{more or '00'}" if sign else "+00:00"
        text = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}{zone}"
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(text)
        except (ValueError, TypeError, IndexError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None
