"""One question to every engine: which sessions are in this file, and what do they come to?"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from spanforge.analysis.engines import connect
from spanforge.analysis.index import Index
from spanforge.analysis.streaming import SessionFolder
from spanforge.namespaces.retrieval import RAGSessionPayload
from spanforge.namespaces.stages import GENERATED
from spanforge.reader import read_events, read_records
from spanforge.sessions.stored import StoredTotals, stored_sessions
from spanforge.sinks.sqlite import SqliteSink

Figures: TypeAlias = dict[tuple[str, str], dict[str, Any]]
Answer: TypeAlias = tuple[Figures, dict[str, int]]
"""The figures of each session, by organisation and id, and how many lines were left out, by reason."""

_OWN = {"unique_chunk_ids"}
"""What the state of the fold has, and no column."""
_COUNTED = ("answers", "cited", "judged", "helpful")


def by_events(path: Path, *, unique: bool = False) -> Answer:
    """Fold whole events, all held."""
    reader = read_events(path, unique=unique)
    found = {
        (one.org_id, one.session_id): _figures(
            one.session_id,
            one.fold,
            models={event.payload.get("model", "unknown") for event in one.events if event.event_type == GENERATED},
            tags={f"{name}={value}" for event in one.events for name, value in event.tags.items()},
        )
        for one in stored_sessions(reader, reader.damaged)
    }
    return found, dict(reader.damaged)


def by_python(path: Path, hot: int = 4_000) -> Answer:
    """Fold a stream of records; `hot` sessions at once are held in memory."""
    reader, folder = read_records(path), SessionFolder(hot)
    folder.add_all(reader)
    found = {
        (one.org_id, one.session_id): _figures(
            one.session_id, one.fold, models=one.models, tags={f"{name}={value}" for name, value in one.tags}
        )
        for one in folder.sessions()
    }
    return found, dict(reader.damaged)


def by_table(store: Path) -> Answer:
    """Read the sessions that writers of a sqlite store keep; their columns say what the state of the fold says."""
    with closing(sqlite3.connect(store)) as connection:
        connection.row_factory = sqlite3.Row
        states = dict(connection.execute("SELECT session, state FROM session_state").fetchall())
        mentions = connection.execute("SELECT session, kind, text FROM mention").fetchall()
        damaged = dict(connection.execute("SELECT reason, times FROM damage").fetchall())
        rows = connection.execute("SELECT session.id, sessions.* FROM sessions JOIN session USING (org_id, session_id)")
        found: Figures = {}
        for row in rows.fetchall():
            fold = StoredTotals.load(json.loads(states[row["id"]]))
            own = {(mention["kind"], mention["text"]) for mention in mentions if mention["session"] == row["id"]}
            models, tags = ({text for kind, text in own if kind == wanted} for wanted in ("model", "tag"))
            _check_columns(dict(row), fold)
            found[row["org_id"], row["session_id"]] = _figures(row["session_id"], fold, models=models, tags=tags)
    return found, damaged


def by_store(path: Path, cuts: Iterable[int] = ()) -> Figures:
    """Write the events to a sqlite store, in parts that end at the cuts, and read what it keeps of sessions."""
    events, start = list(read_events(path)), 0
    with TemporaryDirectory() as folder:
        sink = SqliteSink(Path(folder) / "events.db")
        for stop in (*sorted(cuts), len(events)):
            sink.write(events[start:stop])
            start = max(start, stop)
        sink.close()
        return by_table(Path(folder) / "events.db")[0]


def by_viewer(path: Path) -> Figures:
    """Read the events as the viewer does, and its scratch store."""
    from spanforge.viewer.store import ViewedStore

    with closing(ViewedStore(path)) as viewed:
        viewed.catch_up()
        with viewed.reading() as connection:
            [(_, _, scratch)] = connection.execute("PRAGMA database_list").fetchall()
        return by_table(Path(scratch))[0]


def in_bulk(path: Path, engine: str = "duckdb") -> Answer:
    """Fold with a bulk engine."""
    with TemporaryDirectory() as scratch:
        index = Index(path, Path(scratch), connect(engine, scratch=Path(scratch)))
        damaged = dict(index.refresh().damaged)
        rows: Iterable[dict[str, Any]] = index.sessions().to_pyarrow().to_pylist()
        return {
            (row["org_id"], row["session_id"]): {k: v for k, v in row.items() if k != "org_id"} for row in rows
        }, damaged


def _figures(session_id: str, fold: StoredTotals, models: set[str], tags: set[str]) -> dict[str, Any]:
    summary = vars(fold.summary(session_id))
    return {
        **{name: list(value) if isinstance(value, tuple) else value for name, value in summary.items()},
        "began_at": summary["started_at"] or fold.first[1],
        "ended": fold.ended,
        "events": fold.events,
        "models": sorted(models),
        "tags": sorted(tags),
        "escalations": fold.escalations,
        "ratings": fold.ratings,
        "rating": fold.rating,
        **{name: getattr(fold, name) for name in _COUNTED},
    }


def _check_columns(columns: dict[str, Any], fold: StoredTotals) -> None:
    summary = fold.summary(columns["session_id"])
    for name in RAGSessionPayload.__dataclass_fields__.keys() - _OWN:
        assert columns[name] == getattr(summary, name), name
    assert (columns["ended"], columns["from_stages"]) == (fold.ended, fold.from_stages)
    assert (columns["first_event_at"], columns["last_event_at"]) == (fold.first[1], fold.last[1])
    assert (columns["events"], columns["escalations"]) == (fold.events, fold.escalations)
    assert (columns["ratings"], columns["rating"]) == (fold.ratings, fold.rating)
    assert columns["reordered"] == fold.reordered
    assert [columns[name] for name in _COUNTED] == [getattr(fold, name) for name in _COUNTED]
