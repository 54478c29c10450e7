"""Where verbs read events from: `--from PATH`, else the first file or store the settings name."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console

from spanforge.analysis import FoldedSession, SessionFilter, SessionFolder, StoredSession, is_sound, stored_sessions
from spanforge.cli._output import CliError, visible
from spanforge.cli._settings import settings
from spanforge.exceptions import ConfigError
from spanforge.namespaces.event import Event
from spanforge.reader import (
    MAX_LINE_BYTES,
    EventReader,
    Reader,
    Record,
    is_url,
    last_lines,
    read_events,
    read_records,
)
from spanforge.reader.decoding import events_in
from spanforge.reader.session_store import ListedSession, SessionStore, session_store
from spanforge.sinks.retention import INDEX_FOLDER

__all__ = [
    "account",
    "check_readable",
    "events_from",
    "figures_path",
    "last_from",
    "latest_from",
    "live_path",
    "path_from",
    "rooted",
    "session_from",
    "sessions_from",
]

T = TypeVar("T")
_Item = TypeVar("_Item", Event, Record)

_DAMAGE: Final = {
    "torn": "torn at the end of the file",
    "too_long": "too long",
    "truncated": "compressed file that breaks off",
    "corrupt": "file that is corrupt",
    "locked": "store that another program has locked: try again",
    "not_a_store": "database of something else",
    "no_events": "table of something else",
    "payload": "payload that is not what its type says",
}
"""Reasons the reader counts, in words; the others are words already."""


def path_from(given: str | None) -> str:
    """Return where to read from."""
    if given is not None:
        return given
    for spec in settings().sinks:
        kind, _, target = spec.partition(":") if isinstance(spec, str) else ("", "", "")
        if kind in {"jsonl", "sqlite"} and target:
            return target
    raise CliError("--from: say which file or store to read, for example --from events.jsonl")


def figures_path(given: str | None) -> Path:
    """Return the store that figures are counted of: what is no file of events is refused, what is not there is not."""
    found = path_from(given)
    if is_url(found):
        raise CliError("--from: figures are of what is on this machine; fetch the file first")
    if Path(found).is_file():
        check_readable(given)
    return Path(found)


def rooted(source: str) -> Path | None:
    """Return the folder of the index of a source; None where nothing can be kept beside it."""
    root = Path(source) if Path(source).is_dir() else Path(source).parent
    if is_url(source) or any(mark in source for mark in "*?[") or not os.access(root, os.W_OK):
        return None
    return root / INDEX_FOLDER / (Path(source).name if root != Path(source) else "all")


def live_path(given: str | None) -> str:
    """Return the one file or store to follow; it may come to be later, and stderr says so."""
    path = path_from(given)
    if is_url(path):
        raise CliError(f"{_name(given)}: only what is on this machine can be followed; --once reads a URL")
    if Path(path).is_dir() or (any(mark in path for mark in "*?[") and not Path(path).exists()):
        raise CliError(f"{_name(given)}: only one file or store can be followed; --once reads a folder or a pattern")
    if path.endswith((".gz", ".zst")):
        raise CliError(f"{_name(given)}: a compressed file does not grow; --once prints what is in it")
    if Path(path).exists():
        check_readable(given)
    else:
        _say(f"waiting for {path}")
    return path


def events_from(given: str | None) -> Iterator[Event]:
    """Give the events of a file or store, each once, and say at the end what was damaged."""
    reader = _reader(given)
    yield from reader
    _account(reader, given)


def last_from(given: str | None, count: int) -> list[Event]:
    """Return the events of the last lines of a file or store, and say what of them was damaged."""
    damaged = Counter[str]()
    lines = last_lines(_reader(given).files, count, MAX_LINE_BYTES, damaged)
    events = [event for line in lines for event in events_in(line.data, damaged)]
    account(damaged, len(events), _name(given))
    return events


def sessions_from(given: str | None, wanted: SessionFilter) -> list[StoredSession]:
    """Return the sessions that pass a filter with all their events, and say on stderr what was damaged."""
    keys = None if wanted == SessionFilter() else _keys(given, wanted)
    reader = _opened(given, read_events)
    events = (event for event in reader if keys is None or (event.org_id, event.session_id) in keys)
    sessions = stored_sessions(events, reader.damaged)
    _account(reader, given)
    return sessions


def _keys(given: str | None, wanted: SessionFilter) -> set[tuple[str, str]]:
    """Return which sessions pass a filter, so that no events of the others need be held."""
    folder = SessionFolder()
    folder.add_all(_opened(given, read_records))
    return {(session.org_id, session.session_id) for session in folder.sessions(wanted)}


def latest_from(
    given: str | None, limit: int, wanted: SessionFilter
) -> tuple[int, Sequence[FoldedSession | ListedSession]]:
    """Return how many sessions pass a filter, and those of them that began last; all where `limit` is 0."""
    status = wanted.status

    def listed(table: SessionStore) -> tuple[int, list[ListedSession]]:
        _say_damage(table.damaged())
        return table.count(status), table.latest(limit, status)

    if wanted == SessionFilter(status=status) and (known := _asked(given, listed)) is not None:
        return known
    reader, folder = _opened(given, read_records), SessionFolder()
    folder.add_all(reader)
    _account(reader, given)
    found = folder.sessions(wanted)
    shown = [*islice(found, limit or None)][::-1]
    more = len(folder) - len(shown) if wanted == SessionFilter() else sum(1 for _ in found)
    return len(shown) + more, shown


def session_from(given: str | None, session_id: str) -> StoredSession:
    """Return one session by its id, or by any prefix or suffix of it that only one has.

    Where several organisations use one id, it may stand behind that of the organisation and a slash.
    """
    known = _asked(given, lambda table: _stored(table, given, session_id))
    if known is not None:
        return known
    reader = _opened(given, read_events)
    found = stored_sessions((one for one in reader if _may_be(one.org_id, one.session_id, session_id)), reader.damaged)
    _account(reader, given)
    sessions = {(session.org_id, session.session_id): session for session in found}
    exact = [key for key in sessions if session_id in {key[1], "/".join(key)}]
    close = exact or [key for key in sessions if key[1].startswith(session_id) or key[1].endswith(session_id)]
    return sessions[_only(close, given)]


def _may_be(org_id: str, session_id: str, asked: str) -> bool:
    return session_id.startswith(asked) or session_id.endswith(asked) or f"{org_id}/{session_id}" == asked


def _asked(given: str | None, ask: Callable[[SessionStore], T]) -> T | None:
    """Ask the table of sessions; None where no whole one can be read, so that the events have to be."""
    with suppress(sqlite3.DatabaseError), session_store(Path(path_from(given)).expanduser()) as table:
        return None if table is None else ask(table)
    return None


def _stored(table: SessionStore, given: str | None, session_id: str) -> StoredSession:
    org_id, own = _only(table.find(session_id), given)
    damaged = Counter[str]()
    events = [event for event in table.events(org_id, own, damaged) if is_sound(event)]
    _say_damage(damaged)
    return StoredSession(own, events)


def _only(keys: Sequence[tuple[str, str]], given: str | None) -> tuple[str, str]:
    """Return the one organisation and session that were found.

    Raises:
        CliError: There is none, or more than one.
    """
    if len(keys) == 1:
        return keys[0]
    store = Path(path_from(given)).name
    if len({session_id for _, session_id in keys}) == 1:
        raise CliError(f"SESSION: {len(keys)} organisations use that id in {store}; say ORGANISATION/SESSION")
    many = f"{len(keys)} sessions match" if keys else "no session matches"
    raise CliError(f"SESSION: {many} that id in {store}; `spanforge sessions` lists them")


def check_readable(given: str | None) -> None:
    """Refuse what is something else than events. What holds nothing yet may come to hold some.

    Raises:
        CliError: There is something, and the beginning of an event is nowhere in it.
    """
    reader = _reader(given)
    if next(reader, None) is None:
        _account(reader, given)


def _reader(given: str | None) -> EventReader:
    return _opened(given, partial(read_events, unique=True))


def _opened(given: str | None, read: Callable[[str], Reader[_Item]]) -> Reader[_Item]:
    path = path_from(given)
    reader: Reader[_Item] | None = None
    try:
        reader = read(path)
    except FileNotFoundError:
        pass
    except ConfigError as error:
        raise CliError(f"{_name(given)}: {error}") from None
    if reader is None and given is None:
        raise CliError("SPANFORGE_SINKS: nothing is written there yet; trace a run first, or say --from PATH")
    if reader is None:
        raise CliError("--from: there is nothing at this path; give a file, a folder, a glob or a store of events")
    if not reader.files:
        raise CliError(
            f"{_name(given)}: no file of events is in this folder; their names end in .jsonl, .ndjson, .db, .sqlite "
            "or .parquet, or in .gz or .zst behind it"
        )
    return reader


def _account(reader: Reader[Any], given: str | None) -> None:
    account(reader.damaged, reader.read, _name(given))


def account(damaged: Mapping[str, int], read: int, name: str) -> None:
    """Say what was skipped; where nothing else was there, it is no file of events.

    Args:
        damaged: What was skipped, by reason.
        read: Events that were read.
        name: The option or argument that named the source.
    """
    if damaged and not read:
        raise CliError(
            f"{name}: no event is in there ({_in_words(damaged)}); give what a jsonl: or sqlite: sink has written"
        )
    _say_damage(damaged)


def _say_damage(damaged: Mapping[str, int]) -> None:
    if damaged:
        _say(f"skipped: {_in_words(damaged)}")


def _in_words(damaged: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {_DAMAGE.get(reason, reason)}" for reason, count in sorted(damaged.items()))


def _name(given: str | None) -> str:
    return "SPANFORGE_SINKS" if given is None else "--from"


def _say(line: str) -> None:
    Console(stderr=True, highlight=False).print(visible(line), soft_wrap=True)
