"""Read stored events again: every whole line, whatever else is in the file."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from spanforge.exceptions import ConfigError
from spanforge.namespaces.event import Event
from spanforge.reader._decode import events_in
from spanforge.reader._follow import follow
from spanforge.reader._lines import SQLITE_MAGIC, lines_of
from spanforge.reader._paths import AnyPath, Paths, expand
from spanforge.reader._store import rows_of

__all__ = ["AnyPath", "EventReader", "Paths", "follow", "read_events"]

_HEAD_BYTES: Final = 16


class EventReader(Iterator[Event]):
    """Iterates over stored events once, and counts what it skips.

    Attributes:
        files: What is read, in order; a folder or a pattern may have led to none.
        read: Events given so far.
        damaged: What was skipped, by reason: lines that are no event under what is wrong with them, `torn` for a
            last line without an end, `too_long`; files once under `truncated`, `corrupt` or `not_a_store`.
        repeated: Events left out by `unique`.
    """

    def __init__(self, files: list[Path], *, max_line_bytes: int, unique: bool, unique_ids: int) -> None:
        self.files = tuple(files)
        self.read = 0
        self.damaged: Counter[str] = Counter()
        self.repeated = 0
        events = (event for file in files for event in _events_of(file, max_line_bytes, self.damaged))
        self._events = self._without_repeats(events, unique_ids) if unique else events

    def __next__(self) -> Event:
        event = next(self._events)
        self.read += 1
        return event

    def _without_repeats(self, events: Iterator[Event], remembered: int) -> Iterator[Event]:
        known: set[str] = set()
        order: deque[str] = deque()
        for event in events:
            if event.event_id in known:
                self.repeated += 1
                continue
            known.add(event.event_id)
            order.append(event.event_id)
            if len(order) > remembered:
                known.remove(order.popleft())
            yield event


def read_events(
    paths: Paths, *, max_line_bytes: int = 16 << 20, unique: bool = False, unique_ids: int = 1_000_000
) -> EventReader:
    """Read events from files, folders and patterns, in the order they were written.

    A file may be jsonl, plain or compressed with gzip or zstd, or a database of the sqlite sink: its first bytes
    tell. Older versions of the envelope are read as the present one; fields that are not known are kept in
    `Event.extra`. Lines are read one at a time, so memory stays bounded.

    Args:
        paths: One path or several: a file, a folder (its `.jsonl`, `.ndjson` and `.db` files, rotated and
            compressed ones too) or a pattern such as `logs/events*.jsonl`.
        max_line_bytes: Longest line; longer ones are counted and skipped.
        unique: Give an event that is stored more than once only once.
        unique_ids: How many of the last ids are remembered for that (about 150 bytes each).

    Returns:
        An iterator over events that counts what it skips.

    Raises:
        FileNotFoundError: A path leads to nothing.
        ConfigError: A limit is below 1.
        MissingExtraError: While iterating: a `.zst` file, and no zstd.
        OSError: While iterating: a file cannot be opened.
    """
    for name, value in (("max_line_bytes", max_line_bytes), ("unique_ids", unique_ids)):
        if value < 1:
            raise ConfigError(f"{name}: use a whole number from 1 up")
    return EventReader(expand(paths), max_line_bytes=max_line_bytes, unique=unique, unique_ids=unique_ids)


def _events_of(path: Path, limit: int, damaged: Counter[str]) -> Iterator[Event]:
    with path.open("rb") as stream:
        head = stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]
        if head == SQLITE_MAGIC:
            with closing(rows_of(path, limit, damaged)) as rows:
                for row in rows:
                    yield from events_in(row.line, damaged)
        else:
            for line in lines_of(stream, head, limit, damaged):
                yield from events_in(line.data, damaged, ended=line.ended)
