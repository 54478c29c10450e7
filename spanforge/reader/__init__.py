"""Read stored events again: every whole line, whatever else is in the file."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias, TypeVar

from spanforge.exceptions import ConfigError
from spanforge.namespaces.event import Event, Identity
from spanforge.reader._follow import follow
from spanforge.reader.contents import stored_lines
from spanforge.reader.decoding import events_of
from spanforge.reader.growth import Mark, last_lines, lines_since, mark, unread
from spanforge.reader.lines import Line
from spanforge.reader.paths import AnyPath, File, Paths, expand, family
from spanforge.reader.records import Record, RecordDecoder
from spanforge.reader.remote import RemoteFile, is_url
from spanforge.sessions.stored import is_sound

__all__ = [
    "MAX_LINE_BYTES",
    "AnyPath",
    "EventReader",
    "File",
    "Line",
    "Mark",
    "Paths",
    "Reader",
    "Record",
    "RecordDecoder",
    "RemoteFile",
    "expand",
    "family",
    "follow",
    "is_url",
    "last_lines",
    "lines_since",
    "mark",
    "read_events",
    "read_records",
    "stored_lines",
    "unread",
]

MAX_LINE_BYTES: Final = 16 << 20


_Item = TypeVar("_Item", Event, Record)
_Decode: TypeAlias = Callable[[Iterable[Line], Counter[str]], Iterator[_Item]]


class Reader(Iterator[_Item]):
    """Iterates over what is stored once, and counts what it skips.

    Attributes:
        files: What is read, in order; a folder or a pattern may have led to none.
        read: Events given so far.
        damaged: What was skipped, by reason: lines that are no event under what is wrong with them, `torn` for a
            last line without an end, `too_long`; files once under `truncated`, `corrupt` or `not_a_store`.
        repeated: Events left out by `unique`.
    """

    def __init__(self, paths: Paths, decode: _Decode[_Item], max_line_bytes: int, unique_ids: int = 0) -> None:
        self.files = tuple(expand(paths))
        self.read = 0
        self.damaged: Counter[str] = Counter()
        self.repeated = 0
        lines = (line for file in self.files for line in stored_lines(file, max_line_bytes, self.damaged))
        items = decode(lines, self.damaged)
        self._items = self._without_repeats(items, unique_ids) if unique_ids else items

    def __next__(self) -> _Item:
        item = next(self._items)
        self.read += 1
        return item

    def _without_repeats(self, items: Iterator[_Item], remembered: int) -> Iterator[_Item]:
        known: dict[Identity, bool] = {}
        order: deque[Identity] = deque()
        for item in items:
            identity = item.identity
            given = known.get(identity)
            sound = given or isinstance(item, Record) or is_sound(item)
            if given or given is sound:
                self.repeated += 1
                continue
            if given is None:
                order.append(identity)
            known[identity] = sound
            if len(order) > remembered:
                del known[order.popleft()]
            yield item


EventReader: TypeAlias = Reader[Event]


def read_events(
    paths: Paths, *, max_line_bytes: int = MAX_LINE_BYTES, unique: bool = False, unique_ids: int = 1_000_000
) -> EventReader:
    """Read events from files, folders and patterns, in the order they were written.

    A file may be jsonl, plain or compressed with gzip or zstd, a database of the sqlite sink or a Parquet table: its
    first bytes tell. It may stand on this machine or behind a URL that fsspec knows, such as `s3://bucket/logs/`.
    Older versions of the envelope are read as the present one; fields that are not known are kept in `Event.extra`.
    Lines are read one at a time, so memory stays bounded.

    Args:
        paths: One path or several: a file, a folder (its `.jsonl`, `.ndjson`, `.db` and `.parquet` files, rotated and
            compressed ones too), a pattern such as `logs/events*.jsonl`, or the URL of any of these.
        max_line_bytes: Longest line; longer ones are counted and skipped.
        unique: Give an event that is stored more than once only once. Two are one where organisation, session and id
            are the same; one whose payload is not what its type says stands in no other's place.
        unique_ids: How many of the last events are remembered for that (about 300 bytes each).

    Returns:
        An iterator over events that counts what it skips.

    Raises:
        FileNotFoundError: A path leads to nothing.
        ConfigError: A limit is below 1, or a URL is of no known kind.
        MissingExtraError: A URL, and no fsspec; while iterating: a `.zst` or Parquet file, and nothing to read it.
        OSError: While iterating: a file cannot be opened.
    """
    for name, value in (("max_line_bytes", max_line_bytes), ("unique_ids", unique_ids)):
        if value < 1:
            raise ConfigError(f"{name}: use a whole number from 1 up")
    return Reader(paths, events_of, max_line_bytes, unique_ids if unique else 0)


def read_records(paths: Paths, *, max_line_bytes: int = MAX_LINE_BYTES) -> Reader[Record]:
    """Read what the fold of sessions needs of each sound event, repeats included, at a third of the time.

    Args:
        paths: As of `read_events`.
        max_line_bytes: As of `read_events`.

    Raises:
        FileNotFoundError: A path leads to nothing.
    """
    return Reader(paths, RecordDecoder(), max_line_bytes)
