"""What a store forgets: as if it had never been written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.stored import event

from spanforge import _clock
from spanforge.exceptions import ConfigError
from spanforge.namespaces.event import Event
from spanforge.sinks.retention import forget
from spanforge.sinks.sqlite import SqliteSink

DAY_S = 86_400.0
CANARY = "zirbenholz-5d20-wacholder"
TABLES = {
    "events": "SELECT event_id FROM events ORDER BY 1",
    "session": "SELECT org_id, session_id, events, status, started_us FROM session ORDER BY 1, 2",
    "state": "SELECT count(*) FROM session_state",
    "mention": "SELECT kind, text, org_id, session_id FROM mention JOIN session ON id = session ORDER BY 1, 2, 3",
    "mentions": "SELECT count(*) FROM mention",
    "tally": "SELECT * FROM tally WHERE times ORDER BY 1, 2",
    "unsessioned": "SELECT without_session FROM folded",
}


def _event(number: int, age_days: float, session: str, org: str = "") -> Event:
    made = event(number, session_id=session, query_hash=f"{number:064x}")
    at = _clock.timestamp(_clock.wall_ns() - int(age_days * DAY_S * 1e9))
    return replace(made, timestamp=at, org_id=org, tags={"release": session or CANARY})


OLD = [
    _event(1, 40, "gone"),
    _event(2, 35, "gone"),
    _event(3, 50, f"gone-{CANARY}", "north"),
    _event(4, 60, ""),
]
KEPT = [
    _event(5, 40, "long"),  # old, and its session went on
    _event(6, 2, "long"),
    _event(7, 1, "new", "north"),
    _event(8, 1, ""),
]


def _state(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return {name: connection.execute(query).fetchall() for name, query in TABLES.items()}


def _store(path: Path, events: list[Event], keep: float | None = None) -> SqliteSink:
    sink = SqliteSink(path, keep=keep)
    sink.write(events)
    return sink


@pytest.fixture
def never(tmp_path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What a store holds to which the old events were never written."""
    _store(tmp_path / "never.db", KEPT).close()
    return _state(tmp_path / "never.db")


def test_a_store_is_as_if_the_old_had_never_been_there(tmp_path: Path, never: object) -> None:
    path = tmp_path / "events.db"
    _store(path, OLD + KEPT).close()
    assert forget(path, 30 * DAY_S) == len(OLD)
    assert forget(path, 30 * DAY_S) == 0
    assert _state(path) == never


def test_whoever_writes_goes_on_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    sink = _store(path, OLD)
    assert forget(path, 30 * DAY_S) == len(OLD)
    sink.write(OLD[:2])
    assert [row[1:3] for row in _state(path)["session"]] == [("gone", 2)]
    sink.close()


def test_the_sink_forgets_by_itself(tmp_path: Path, never: object) -> None:
    path = tmp_path / "events.db"
    sink = _store(path, OLD + KEPT, keep=30 * DAY_S)
    assert _state(path) == never
    sink.close()


@pytest.mark.parametrize("keep", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(tmp_path: Path, keep: float) -> None:
    with pytest.raises(ConfigError, match="keep"):
        SqliteSink(tmp_path / "events.db", keep=keep)


def test_an_index_that_tells_of_what_was_forgotten_is_removed(tmp_path: Path) -> None:
    path, index = tmp_path / "events.db", tmp_path / ".spanforge/index/events.db"
    for keep in (None, 30 * DAY_S):
        path.unlink(missing_ok=True)
        index.mkdir(parents=True)
        _store(path, [*OLD, *KEPT], keep).close()
        assert index.exists() is (keep is None)
        assert (forget(path, 30 * DAY_S) > 0) is (keep is None)
        assert not index.exists()
