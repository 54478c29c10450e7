"""Events out of lines; what is damaged is counted, and what can be saved from a damaged line is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from spanforge.exceptions import DecodeError
from spanforge.namespaces.event import PRUNED, Event
from spanforge.reader.lines import Line

__all__ = ["events_in", "events_of"]

_START: Final = b'{"schema_version":'


def events_in(data: bytes, damaged: Counter[str], *, ended: bool = True) -> Iterator[Event]:
    """Give the event of a line; a tombstone is none.

    A line that is no event counts as damaged, by reason; a last one without a line end as `torn`. Where a torn
    line and a whole one run together, the whole one is given all the same.
    """
    if not data or data.isspace():
        return
    try:
        event = Event.decode(data)
    except DecodeError as error:
        damaged[str(error) if ended else "torn"] += 1
    else:
        if event.event_type != PRUNED:
            yield event
        return
    yield from _saved(data)


def events_of(lines: Iterable[Line], damaged: Counter[str]) -> Iterator[Event]:
    """Give the events of lines."""
    for data, ended in lines:
        yield from events_in(data, damaged, ended=ended)


def _saved(data: bytes) -> Iterator[Event]:
    # Within a JSON string the quotes would be escaped, so these bytes begin an object wherever they stand.
    for piece in data.split(_START)[1:]:
        whole = _START + piece[: piece.rfind(b"}") + 1]
        if whole != data:
            try:
                yield Event.decode(whole)
            except DecodeError:
                continue
