"""Where verbs read events from: `--from PATH`, else the first file or store the settings name."""

from __future__ import annotations

from pathlib import Path

from spanforge.analysis import StoredSession, stored_sessions
from spanforge.cli._output import CliError, console
from spanforge.reader import EventReader, read_events
from spanforge.sdk import Settings

__all__ = ["FROM_HELP", "events_from", "path_from", "session_from", "sessions_from"]

FROM_HELP = "File, folder, glob or store of events; the first jsonl: or sqlite: sink of SPANFORGE_SINKS without it."


def path_from(given: str | None) -> str:
    """Return where to read from."""
    if given is not None:
        return given
    for spec in Settings.load().sinks:
        kind, _, target = spec.partition(":") if isinstance(spec, str) else ("", "", "")
        if kind in {"jsonl", "sqlite"} and target:
            return target
    raise CliError("--from: say which file or store to read, for example --from events.jsonl")


def events_from(given: str | None) -> EventReader:
    """Return the events of a file or store, each once."""
    return read_events(path_from(given), unique=True)


def sessions_from(given: str | None) -> list[StoredSession]:
    """Return the sessions of a file or store, and say on stderr what of it was damaged."""
    reader = events_from(given)
    sessions = stored_sessions(reader, reader.damaged)
    if reader.damaged:
        damage = ", ".join(f"{count} {reason}" for reason, count in sorted(reader.damaged.items()))
        console.__class__(stderr=True, highlight=False).print(f"skipped damaged lines: {damage}")
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
