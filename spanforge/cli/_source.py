"""Where verbs read events from: `--from PATH`, else the first file or store the settings name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from rich.console import Console

from spanforge.analysis import StoredSession, stored_sessions
from spanforge.cli._output import CliError, visible
from spanforge.cli._settings import settings
from spanforge.namespaces.event import Event
from spanforge.reader import EventReader, read_events

__all__ = ["check_readable", "events_from", "live_path", "path_from", "session_from", "sessions_from"]

_DAMAGE: Final = {
    "torn": "torn at the end of the file",
    "too_long": "too long",
    "truncated": "compressed file that breaks off",
    "corrupt": "file that is corrupt",
    "not_a_store": "database of something else",
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


def live_path(given: str | None) -> str:
    """Return the one file or store to follow; it may come to be later, and stderr says so."""
    path = path_from(given)
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


def sessions_from(given: str | None) -> list[StoredSession]:
    """Return the sessions of a file or store, and say on stderr what of it was damaged."""
    reader = _reader(given)
    sessions = stored_sessions(reader, reader.damaged)
    _account(reader, given)
    return sessions


def session_from(given: str | None, session_id: str) -> StoredSession:
    """Return one session by its id, or by any prefix or suffix of it that only one has."""
    sessions = sessions_from(given)
    exact = [session for session in sessions if session.session_id == session_id]
    close = exact or [s for s in sessions if s.session_id.startswith(session_id) or s.session_id.endswith(session_id)]
    if len(close) == 1:
        return close[0]
    many = f"{len(close)} sessions match" if close else "no session matches"
    raise CliError(f"SESSION: {many} that id in {Path(path_from(given)).name}; `spanforge sessions` lists them")


def check_readable(given: str | None) -> None:
    """Refuse what is something else than events. What holds nothing yet may come to hold some.

    Raises:
        CliError: There is something, and the beginning of an event is nowhere in it.
    """
    reader = _reader(given)
    if next(reader, None) is None:
        _account(reader, given)


def _reader(given: str | None) -> EventReader:
    path = path_from(given)
    reader: EventReader | None = None
    with suppress(FileNotFoundError):
        reader = read_events(path, unique=True)
    if reader is None and given is None:
        raise CliError("SPANFORGE_SINKS: nothing is written there yet; trace a run first, or say --from PATH")
    if reader is None:
        raise CliError("--from: there is nothing at this path; give a file, a folder, a glob or a store of events")
    if not reader.files:
        raise CliError(
            f"{_name(given)}: no file of events is in this folder; their names end in .jsonl, .ndjson, .db or .sqlite, "
            "or in .gz or .zst behind it"
        )
    return reader


def _account(reader: EventReader, given: str | None) -> None:
    """Say what was skipped; where nothing else was there, it is no file of events."""
    if not reader.damaged:
        return
    damage = _in_words(reader.damaged)
    if not reader.read:
        raise CliError(
            f"{_name(given)}: no event is in there ({damage}); give what a jsonl: or sqlite: sink has written"
        )
    _say(f"skipped: {damage}")


def _in_words(damaged: Counter[str]) -> str:
    return ", ".join(f"{count} {_DAMAGE.get(reason, reason)}" for reason, count in sorted(damaged.items()))


def _name(given: str | None) -> str:
    return "SPANFORGE_SINKS" if given is None else "--from"


def _say(line: str) -> None:
    Console(stderr=True, highlight=False).print(visible(line), soft_wrap=True)
