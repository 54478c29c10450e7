"""Hours of the day in which nobody wants to be called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time
from typing import Final, Self
from zoneinfo import ZoneInfo

from spanforge.exceptions import ConfigError

__all__ = ["QuietHours"]

_TIME: Final = r"((?:[01][0-9]|2[0-3]):[0-5][0-9])"
_HOURS: Final = re.compile(rf"{_TIME}-{_TIME}(?: (\S+))?")


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A part of every day, by the clocks of a place.

    Attributes:
        start: Its first minute; `end` is the first after it, on the next day where it comes before the start.
        zone: Where.
    """

    start: time
    end: time
    zone: ZoneInfo

    def holds(self, moment_ns: int) -> bool:
        """Tell whether a moment, in nanoseconds since the epoch, lies in it."""
        now = datetime.fromtimestamp(moment_ns // 1_000_000_000, self.zone).time()
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end

    @classmethod
    def of(cls, given: object, field: str) -> Self:
        """Return the hours that a text names, as `22:00-07:00 Europe/Berlin`; those of UTC without a zone.

        Raises:
            ConfigError: It names none; the message names the field and what would do.
        """
        found = _HOURS.fullmatch(given) if isinstance(given, str) else None
        if found is None:
            raise ConfigError(f'{field}: give two times of day and a time zone, as in "22:00-07:00 Europe/Berlin"')
        if found[1] == found[2]:
            raise ConfigError(f"{field}: it begins and ends at the same time; give two that differ")
        try:
            zone = ZoneInfo(found[3] or "UTC")
        except (LookupError, ValueError, OSError):  # a path, or a folder of zones
            zone = None
        if zone is None:
            raise ConfigError(f"{field}: this machine knows no such time zone; name another, or install tzdata")
        return cls(time.fromisoformat(found[1]), time.fromisoformat(found[2]), zone)
