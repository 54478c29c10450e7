"""One event, read: its typed payload, and when it began and ended as it was reported."""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, TypeVar

from spanforge import _clock, _ids
from spanforge.exceptions import InvalidPayloadError
from spanforge.namespaces import PAYLOADS
from spanforge.namespaces.event import Event
from spanforge.namespaces.payload import Payload

__all__ = ["Stage", "moment", "read_stage"]

P_co = TypeVar("P_co", bound=Payload, covariant=True)

_MAX_NS: Final = (1 << 63) - 1


class Stage(NamedTuple, Generic[P_co]):
    """One event, read.

    Attributes:
        event: The event as it is stored.
        payload: Its payload.
        start_ns: When the stage began, nanoseconds since the epoch.
        end_ns: When it ended; never before it began.
        reconstructed: The two moments were worked out, because the stage was reported after the fact.
    """

    event: Event
    payload: P_co
    start_ns: int
    end_ns: int
    reconstructed: bool = False

    @property
    def length_ns(self) -> int:
        """How long it took, as far as that is known."""
        return self.end_ns - self.start_ns


def read_stage(event: Event) -> Stage[Payload] | None:
    """Return the event with its typed payload; None for what this version does not know or cannot read."""
    kind = PAYLOADS.get(event.event_type)
    if kind is None:
        return None
    try:
        payload = kind.from_dict(event.payload)
    except (InvalidPayloadError, TypeError):
        # TypeError: a required field is missing; it names the field and nothing else.
        return None
    end = _end_ns(event)
    # A stage's event is made when the stage ends.
    lasted = int(min((getattr(payload, "latency_ms", None) or 0.0) * 1e6, float(_MAX_NS)))
    return Stage(event, payload, max(0, end - lasted), end)


def _end_ns(event: Event) -> int:
    """Return when the event was made; its id says so where its timestamp cannot be read."""
    made = moment(event.timestamp)
    if made is None:
        made = ((_ids.decode(event.event_id) or 0) >> 80) * 1_000_000
    return min(made, _MAX_NS)


def moment(text: str | None) -> int | None:
    """Return a timestamp as nanoseconds since the epoch; None for what is none."""
    if not text:
        return None
    try:
        return max(0, _clock.parse_timestamp(text))
    except ValueError:
        return None
